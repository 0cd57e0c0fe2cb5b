// Command expressions prints the expressions of a Grafana dashboard as a file
// of Prometheus rules, so that promtool can check them:
//
//	go run ./deploy/grafana/expressions deploy/grafana/rwproxy.json | promtool check rules
//
// It may import nothing of this module.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// variables are what Grafana puts in their places.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$database", ".*")

type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Targets []struct {
			RefID string
			Expr  string
		}
	}
}

type rules struct {
	Groups []group `json:"groups"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: expressions DASHBOARD.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "expressions:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	g := group{Name: "dashboard"}
	seen := map[int]string{}
	for _, p := range d.Panels {
		if other, found := seen[p.ID]; found {
			return fmt.Errorf("%s: panels %q and %q have one id", path, other, p.Title)
		}
		seen[p.ID] = p.Title
		for _, t := range p.Targets {
			expr := variables.Replace(t.Expr)
			if strings.Contains(expr, "$") {
				return fmt.Errorf("%s: panel %q has a variable that is not known: %s", path, p.Title, t.Expr)
			}
			// The name shows where an error is.
			g.Rules = append(g.Rules, rule{Record: fmt.Sprintf("panel_%d:%s", p.ID, t.RefID), Expr: expr})
		}
	}
	if len(g.Rules) == 0 {
		return fmt.Errorf("%s has no expressions", path)
	}
	// JSON is YAML.
	return json.NewEncoder(os.Stdout).Encode(rules{Groups: []group{g}})
}
