package console

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode"
)

// tokenPrefix begins every token, so that one that was published by mistake is
// recognized.
const tokenPrefix = "rwproxy_"

// maxTokenFile bounds the file of tokens, in bytes.
const maxTokenFile = 1 << 20

// maxName is how long names are in Postgres, in bytes. A longer one it would cut,
// to another one maybe.
const maxName = 63

// Tokens are the bearer tokens of a file, each of a role. It has a line for
// each token: the role, a space, and the token's SHA-256 in hexadecimal. A token
// is random, so that a plain hash is enough. Lines that begin with # and empty
// ones count for nothing.
type Tokens struct {
	file    string
	current atomic.Pointer[[]token]
}

type token struct {
	role string
	hash [sha256.Size]byte
}

// LoadTokens reads a file of tokens.
func LoadTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	return t, t.Reload()
}

// Reload reads the file again. After an error the old tokens stay.
func (t *Tokens) Reload() error {
	list, err := readTokens(t.file)
	if err != nil {
		return fmt.Errorf("API tokens: %w", err)
	}
	t.current.Store(&list)
	return nil
}

func readTokens(name string) ([]token, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Mode().Perm()&0o027 != 0:
		return nil, fmt.Errorf("%s must not be writable by its group nor be accessible to others: chmod 600 it, or 640", name)
	case info.Size() > maxTokenFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxTokenFile)
	}
	return parseTokens(name, io.LimitReader(file, maxTokenFile))
}

// parseTokens never repeats what a line says: somebody may have put a token
// there.
func parseTokens(name string, r io.Reader) ([]token, error) {
	var list []token
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndexAny(line, " \t")
		if end < 0 {
			return nil, fmt.Errorf("%s, line %d: not a role and the SHA-256 of a token, as rwproxy token prints them", name, number)
		}
		entry := token{role: strings.TrimSpace(line[:end])}
		hash, err := hex.DecodeString(line[end+1:])
		if err != nil || copy(entry.hash[:], hash) != sha256.Size || len(hash) != sha256.Size {
			return nil, fmt.Errorf("%s, line %d: the last word is not a SHA-256 in hexadecimal", name, number)
		}
		if err := checkRole(entry.role); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
		list = append(list, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// role returns whose token a text is. How long that takes does not depend on
// how much of the text is right.
func (t *Tokens) role(text string) (role string, found bool) {
	hash := sha256.Sum256([]byte(text))
	for _, known := range *t.current.Load() {
		if subtle.ConstantTimeCompare(hash[:], known.hash[:]) == 1 {
			role, found = known.role, true
		}
	}
	return role, found
}

// NewToken returns a new token of a role, and the line that makes it known.
func NewToken(role string) (text, line string, err error) {
	if err := checkRole(role); err != nil {
		return "", "", err
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(text))
	return text, role + " " + hex.EncodeToString(hash[:]), nil
}

// checkRole returns why a role can have no line in the file.
func checkRole(role string) error {
	switch {
	case role == "":
		return errors.New("no role is named")
	case len(role) > maxName:
		return fmt.Errorf("the name of a role has at most %d bytes", maxName)
	case strings.HasPrefix(role, "#") || role != strings.TrimSpace(role) || strings.ContainsFunc(role, unicode.IsControl):
		return errors.New("the name of a role with a token neither begins with # nor begins or ends with a space, and has no control characters")
	}
	return nil
}
