package embedded

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// dieWithOwner makes the server shut down when the process that started it is
// gone. SIGINT is Postgres's fast shutdown.
func dieWithOwner(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// isPostmaster reports whether the process is a server of this cluster: a
// server's working directory is its cluster.
func isPostmaster(pid int, cluster string) bool {
	directory, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	expected, err := os.Stat(cluster)
	return err == nil && os.SameFile(directory, expected)
}

// childrenOf returns the processes that the given one has started.
func childrenOf(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	var children []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			continue
		}
		// pid (program name) state ppid …, and the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}
