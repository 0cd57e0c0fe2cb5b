package main

import (
	"regexp"
	"strings"
)

var (
	copyFromClient = regexp.MustCompile(`(?i)\bfrom\s+stdin\b.*;`)
	copyCommand    = regexp.MustCompile(`(?i)^\\copy\s.*\bfrom\s+stdin\b`)
	// looksLikeSQL tells statements from a COPY's data.
	looksLikeSQL = regexp.MustCompile(`^[A-Za-z].*[^;];$`)
	// sends is a command that ends a statement, as a semicolon does.
	sends = regexp.MustCompile(`\\(g(set|x|desc|exec)?|crosstabview)(\s.*)?$`)
	// afterStatement is any other command on the line of a statement.
	afterStatement = regexp.MustCompile(`;\s*\\[a-z].*$`)
	quotedVariable = regexp.MustCompile(`(^|[^:]):(['"][A-Za-z_]\w*['"])`)
	bareVariable   = regexp.MustCompile(`(^|[\s(,=]):([A-Za-z_]\w*)`)
)

// withoutPsql returns what psql would send of a script of its own: without
// backslash commands and the data of COPY, and with names in place of
// variables, whose values no check here needs. Every \if has all its branches.
func withoutPsql(script string) string {
	lines := strings.Split(script, "\n")
	var sent []string
	for i := 0; i < len(lines); i++ {
		line := sends.ReplaceAllString(lines[i], ";")
		line = strings.ReplaceAll(line, `\;`, ";")
		if strings.HasPrefix(line, `\`) {
			if copyCommand.MatchString(line) {
				i += dataLines(lines[i+1:])
			}
			continue
		}
		line = afterStatement.ReplaceAllString(line, ";")
		line = quotedVariable.ReplaceAllString(line, "$1$2")
		line = bareVariable.ReplaceAllString(line, "$1$2")
		sent = append(sent, line)
		if copyFromClient.MatchString(line) {
			i += dataLines(lines[i+1:])
		}
	}
	return strings.Join(sent, "\n")
}

// dataLines returns how many of the lines behind a COPY are its data. A COPY
// that fails has none.
func dataLines(lines []string) int {
	for i, line := range lines {
		switch {
		case line == `\.`:
			return i + 1
		case looksLikeSQL.MatchString(line):
			return 0
		}
	}
	return 0
}
