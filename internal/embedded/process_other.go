//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithOwner does nothing: only Linux can tell a process that its parent
// died. The server of a killed owner has to be stopped with pg_ctl.
func dieWithOwner(*syscall.SysProcAttr) {}

// isPostmaster reports whether the process is a postgres program; which
// cluster it serves cannot be seen from outside.
func isPostmaster(pid int, _ string) bool {
	out, err := exec.Command("ps", "-p", strconv.Itoa(pid), "-o", "comm=").Output()
	return err == nil && strings.Contains(string(out), "postgres")
}

// childrenOf returns the processes that the given one has started.
func childrenOf(pid int) []int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // fails when there are none
	var children []int
	for field := range strings.FieldsSeq(string(out)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}
