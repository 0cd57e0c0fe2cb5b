package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Run prints the version.
func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "rwproxy %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version is the module's version as the Go toolchain has recorded it: a tag,
// or the commit, or (devel) outside a repository.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
