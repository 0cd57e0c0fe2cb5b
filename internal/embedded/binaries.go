package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The majors of PostgreSQL that rwproxy supports.
const (
	oldestMajor = 14
	newestMajor = 18
)

// ErrNoBinaries means that no server binaries of a supported version are
// installed. The error that wraps it says what to install.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries found")

// installation is one folder with a server's programs.
type installation struct {
	bin   string // the folder
	major int
}

func (i installation) program(name string) string { return filepath.Join(i.bin, name) }

// binFolders are the usual places of server binaries, as glob patterns.
var binFolders = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // PGDG on Red Hat, SUSE
	"/usr/libexec/postgresql*",                           // Alpine
	"/usr/local/pgsql/bin",                               // built from source
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew, Apple silicon
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew, Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",    // Homebrew, Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
}

// find returns the installation to use: the one in bin if bin is not "", else
// the newest supported one, or the newest of the given major if major is not
// 0 and there is one.
func find(ctx context.Context, bin string, major int) (installation, error) {
	if bin != "" {
		found, err := inspect(ctx, bin)
		if err != nil {
			return installation{}, fmt.Errorf("no usable PostgreSQL server in %s: %w", bin, err)
		}
		return found, nil
	}
	return choose(installations(ctx, append(pathFolders(ctx), expand(binFolders)...)), major)
}

// choose returns the installation of a major, or the first one if there is
// none or the major is 0.
func choose(found []installation, major int) (installation, error) {
	if len(found) == 0 {
		return installation{}, fmt.Errorf("%w: install PostgreSQL %d to %d (%s), or name a running server with --upstream",
			ErrNoBinaries, oldestMajor, newestMajor, installHint())
	}
	for _, i := range found {
		if i.major == major {
			return i, nil
		}
	}
	return found[0], nil
}

// installations returns the supported installations among folders, newest
// first; of one major, the earlier folder first.
func installations(ctx context.Context, folders []string) []installation {
	var found []installation
	seen := map[string]bool{}
	for _, folder := range folders {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
		if seen[folder] {
			continue
		}
		seen[folder] = true
		if i, err := inspect(ctx, folder); err == nil {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b installation) int { return b.major - a.major })
	return found
}

// pathFolders returns the folders that PATH leads to: that of postgres itself,
// and the one pg_config names.
func pathFolders(ctx context.Context) []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		// Homebrew and others put symbolic links into PATH; the programs next
		// to the real file belong together.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		folders = append(folders, filepath.Dir(path))
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	return folders
}

func expand(patterns []string) []string {
	var folders []string
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern) // fails only for a bad pattern
		folders = append(folders, matches...)
	}
	return folders
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// inspect checks that a folder holds a supported server and initdb.
func inspect(ctx context.Context, bin string) (installation, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return installation{}, err
	}
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(bin, name))
		if err != nil {
			return installation{}, err
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return installation{}, fmt.Errorf("%s is not a program", name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// postgres prints its version as root too.
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return installation{}, fmt.Errorf("postgres --version: %w", err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return installation{}, fmt.Errorf("postgres --version printed %q", strings.TrimSpace(string(out)))
	}
	major, err := strconv.Atoi(string(match[1]))
	if err != nil || major < oldestMajor || major > newestMajor {
		return installation{}, fmt.Errorf("PostgreSQL %s is not supported, %d to %d are", match[1], oldestMajor, newestMajor)
	}
	return installation{bin: bin, major: major}, nil
}

func installHint() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	return "Debian and Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; Homebrew: brew install postgresql@17"
}
