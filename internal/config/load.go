package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load returns the settings, or every fault of theirs, joined. lookup is
// os.LookupEnv; an empty variable counts as absent.
func Load(flags Flags, lookup func(string) (string, bool)) (*Settings, error) {
	given := flags.values()
	file, faults := readFile(path(given, lookup))
	s := &Settings{}
	faulty := map[string]bool{}
	for _, setting := range table {
		value, source := setting.initial, setting.name
		if fromFile, ok := file[setting.name]; ok {
			value, source = fromFile, setting.name+" in the file"
		}
		if fromEnvironment, ok := lookup(setting.variable()); ok && fromEnvironment != "" {
			value, source = fromEnvironment, setting.variable()
		}
		if fromFlag, ok := given[setting.name]; ok {
			value, source = fromFlag, "--"+setting.name
		}
		if err := setting.set(s, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", source, err))
			faulty[setting.name] = true
		}
	}
	faults = append(faults, s.check(faulty)...)
	if len(faults) > 0 {
		return nil, &Faults{faults}
	}
	return s, nil
}

// path returns the name of the file, "" for none.
func path(given map[string]string, lookup func(string) (string, bool)) string {
	if name, ok := given["config"]; ok {
		return name
	}
	name, _ := lookup("RWPROXY_CONFIG")
	return name
}

// readFile returns the settings of a YAML file: one mapping of names to
// scalars, taken as they are written.
func readFile(name string) (map[string]string, []error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, []error{fmt.Errorf("settings file: %w", err)}
	}
	var document map[string]yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		// The parser's message may quote the text, and that may be a secret.
		return nil, []error{fmt.Errorf("settings file %s: not a YAML mapping of names to values", name)}
	}
	values := map[string]string{}
	var faults []error
	for key, node := range document {
		known := slices.ContainsFunc(table, func(s setting) bool { return s.name == key })
		switch {
		case !known:
			faults = append(faults, fmt.Errorf("settings file %s, line %d: there is no setting %q", name, node.Line, key))
		case node.Kind != yaml.ScalarNode:
			faults = append(faults, fmt.Errorf("settings file %s, line %d: %s takes one value", name, node.Line, key))
		case node.Tag != "!!null":
			values[key] = node.Value
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return values, faults
}

// Faults are all that is wrong with the settings.
type Faults struct{ faults []error }

// Error returns the faults on one line.
func (f *Faults) Error() string {
	return strings.ReplaceAll(errors.Join(f.faults...).Error(), "\n", "; ")
}

// Unwrap returns the single faults.
func (f *Faults) Unwrap() []error { return f.faults }
