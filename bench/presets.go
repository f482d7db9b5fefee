// Experiments by name. They are data: presets.json.

package bench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Preset is an experiment: what to run, and which tables and figures to make of it besides the usual ones.
type Preset struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Like string `json:"like"` // another preset, whose settings count where this one has none

	Runs         []PresetRun  `json:"runs"`
	Prompts      int          `json:"prompts"`
	WarmUp       *int         `json:"warm_up"`
	MaxTokens    int          `json:"max_tokens"`
	Budget       int          `json:"budget"`
	NoController bool         `json:"no_controller"`
	Memory       bool         `json:"memory"`
	Lengths      []int        `json:"lengths"`
	Tables       []TableView  `json:"tables"`
	Figures      []FigureView `json:"figures"`
}

// PresetRun is suites with the methods to measure on each.
type PresetRun struct {
	Suites  []string `json:"suites"`
	Methods []string `json:"methods"`
}

// TableView is a table of some columns, the suites side by side.
type TableView struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
}

// FigureView is a plot of the speed-up over two options of the methods' drafters.
type FigureView struct {
	Name string `json:"name"`
	X    string `json:"x"`
	Y    string `json:"y"`
}

//go:embed presets.json
var presetsJSON []byte

var presets = sync.OnceValue(func() []Preset {
	d := json.NewDecoder(bytes.NewReader(presetsJSON))
	d.DisallowUnknownFields()
	var all []Preset
	if err := d.Decode(&all); err != nil {
		panic(fmt.Sprintf("bench: presets.json: %v", err)) // a programmer's mistake, which the tests find
	}
	for i := range all {
		p := &all[i]
		if p.Like == "" {
			continue
		}
		at := slices.IndexFunc(all[:i], func(o Preset) bool { return o.Name == p.Like })
		if at < 0 {
			panic(fmt.Sprintf("bench: presets.json: %s is like %q, which does not come before it", p.Name, p.Like))
		}
		p.inherit(all[at])
	}
	return all
})

// inherit takes from o what p has not.
func (p *Preset) inherit(o Preset) {
	if p.Runs == nil {
		p.Runs = o.Runs
	}
	if p.Prompts == 0 {
		p.Prompts = o.Prompts
	}
	if p.WarmUp == nil {
		p.WarmUp = o.WarmUp
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = o.MaxTokens
	}
	if p.Budget == 0 {
		p.Budget = o.Budget
	}
	if p.Lengths == nil {
		p.Lengths = o.Lengths
	}
	if p.Tables == nil {
		p.Tables = o.Tables
	}
	if p.Figures == nil {
		p.Figures = o.Figures
	}
	p.NoController = p.NoController || o.NoController
	p.Memory = p.Memory || o.Memory
}

// Presets lists the experiments there are.
func Presets() []Preset { return slices.Clone(presets()) }

// LookupPreset finds one by name.
func LookupPreset(name string) (Preset, error) {
	var names []string
	for _, p := range presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("there is no preset %q: want one of %s", name, strings.Join(names, ", "))
}

// Expand writes out the braces of texts: a{b,c}d is abd and acd.
func Expand(texts []string) ([]string, error) {
	var all []string
	for _, t := range texts {
		more, err := expand(t)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", t, err)
		}
		all = append(all, more...)
	}
	return all, nil
}
