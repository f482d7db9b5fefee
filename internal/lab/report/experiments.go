// Package report runs the papers' experiments on a model and writes what came of them, beside the
// papers' own figures, as one HTML page and as JSON. It also measures the tables of docs/benchmarks
// anew.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// Experiment is one of the papers' experiments, as it is done here.
type Experiment struct {
	Name  string `json:"name"` // of its folder
	Title string `json:"title"`
	About string `json:"about"` // what is compared

	Kind         string    `json:"kind,omitempty"` // empty: methods on suites of prompts; or adapt, or serve
	Suites       []string  `json:"suites"`
	Methods      []string  `json:"methods"` // as bench spec reads them
	Budgets      []int     `json:"budgets,omitempty"`
	Temperatures []float32 `json:"temperatures,omitempty"`
	Controller   bool      `json:"controller,omitempty"`
	Policies     []string  `json:"policies,omitempty"` // of adapt
	Clients      []int     `json:"clients,omitempty"`  // of serve

	Columns []string `json:"columns,omitempty"` // of the table; see bench.SpecReport.Cells
	// that the page shows, without their suites' names; see bench.SpecReport.Figures
	Figures []string `json:"figures,omitempty"`

	Paper  *Published `json:"paper,omitempty"`
	Orders []Order    `json:"orders,omitempty"`
}

// Kinds of experiments.
const (
	kindAdapt = "adapt"
	kindServe = "serve"
)

// Published is what a paper found.
type Published struct {
	Source  string   `json:"source"`
	Columns []string `json:"columns"`
	Rows    []struct {
		Name   string   `json:"name"`
		Values []string `json:"values"`
	} `json:"rows"`
}

// Order says that a figure grows from method to method: what the paper found, and what is looked for here.
type Order struct {
	Metric  string   `json:"metric"` // a key of metrics
	Methods []string `json:"methods"`
	Reason  string   `json:"reason,omitempty"` // why it may be otherwise, or what it is for
}

//go:embed experiments.json
var experimentsJSON []byte

// Experiments lists what a report is made of.
func Experiments() []Experiment {
	var all []Experiment
	d := json.NewDecoder(bytes.NewReader(experimentsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		panic(fmt.Sprintf("report: experiments.json: %v", err)) // a programmer's mistake, which the tests find
	}
	return all
}

// command is how to run the experiment alone.
func (e *Experiment) command(s *size) string {
	var b strings.Builder
	flag := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	list := func(name string, values any) {
		flag("--%s %s", name, strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ","))
	}
	switch e.Kind {
	case kindAdapt:
		b.WriteString("grove bench adapt")
		list("stream", e.Suites)
		list("drafter", e.Methods)
		list("policy", e.Policies)
		flag("--queries %d -n %d", s.Queries, s.Tokens)
	case kindServe:
		b.WriteString("grove bench serve")
		list("suite", e.Suites)
		for _, m := range e.Methods {
			flag("--drafters %s", m)
		}
		list("clients", e.Clients)
		flag("--requests %d --rounds %d -n %d", s.Requests, s.Rounds, s.Tokens)
	default:
		b.WriteString("grove bench spec")
		list("suite", e.Suites)
		for _, m := range e.Methods {
			flag("--method %s", quote(m))
		}
		list("budget", e.Budgets)
		list("temperature", e.Temperatures)
		if !e.Controller {
			flag("--no-controller")
		}
		flag("--prompts %d --warm-up %d -n %d", s.Prompts, s.WarmUp, s.Tokens)
	}
	return b.String()
}

// quote quotes what a shell would take apart.
func quote(s string) string {
	if strings.ContainsAny(s, " ()*?$!;&|<>'\"\\") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
