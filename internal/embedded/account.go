package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrUnreachable means that the data directory lies under a directory that the
// server's user may not enter.
var ErrUnreachable = errors.New("the data directory is out of reach")

// account is the user that the server runs as.
type account struct {
	name       string
	credential *syscall.Credential // nil: the user we are
}

// serverAccount returns the user that the server runs as: the one we are, or
// when that is root, which Postgres refuses, postgres or nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as: start rwproxy as an ordinary user")
}

// own makes the account the owner of a file or directory and gives it mode.
func (a account) own(path string, mode os.FileMode) error {
	if a.credential != nil {
		if err := os.Lchown(path, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// makeDir creates a directory that only the account may enter, or takes over
// the one that is there.
func (a account) makeDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return a.own(path, 0o700)
}

// reach checks that the account may enter every directory above path. The
// owner and mode bits are what is checked: where access control lists say
// more, initdb will.
func (a account) reach(path string) error {
	if a.credential == nil {
		return nil
	}
	var closed []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !a.mayEnter(info) {
			closed = append(closed, dir)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if len(closed) == 0 {
		return nil
	}
	dirs := strings.Join(closed, " ")
	return fmt.Errorf("%w: PostgreSQL runs as user %s here, because it refuses to run as root, and that user may not enter %s: choose another place with --data-dir, for example /var/lib/rwproxy, or allow it with chmod o+x %s",
		ErrUnreachable, a.name, dirs, dirs)
}

func (a account) mayEnter(dir fs.FileInfo) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	switch {
	case stat.Uid == a.credential.Uid:
		return dir.Mode()&0o100 != 0
	case stat.Gid == a.credential.Gid:
		return dir.Mode()&0o010 != 0
	}
	return dir.Mode()&0o001 != 0
}
