// Experiments by name. They are data: presets/*.json.

package bench

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Preset is an experiment: what to run, and which tables and figures to make in addition to the usual ones.
type Preset struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Like string `json:"like"` // another preset, whose settings replace missing ones of this preset

	Runs         []PresetRun `json:"runs"`
	Prompts      int         `json:"prompts"`
	WarmUp       *int        `json:"warm_up"`
	MaxTokens    int         `json:"max_tokens"`
	Budgets      []int       `json:"budgets"`
	Temperatures []float32   `json:"temperatures"`
	NoController bool        `json:"no_controller"`
	Chat         bool        `json:"chat"` // lay questions out by the model's chat template

	Measure string       `json:"measure"` // empty for methods on prompts (Spec), or MeasureFaithful
	Memory  bool         `json:"memory"`
	Lengths []int        `json:"lengths"`
	Tables  []TableView  `json:"tables"`
	Figures []FigureView `json:"figures"`
}

// MeasureFaithful measures how well trees predict acceptance: see Faithful.
const MeasureFaithful = "faithful"

// PresetRun is suites, with the methods to measure on each.
type PresetRun struct {
	Suites  []string `json:"suites"`
	Methods []string `json:"methods"`
}

// TableView is a table of some columns, with the suites side by side, or of acceptance by depth,
// with the suites one below the other.
type TableView struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Depths  int      `json:"depths"` // columns for this many depths
}

// FigureView is a plot of the speed-up over two options of the methods' drafters.
type FigureView struct {
	Name string `json:"name"`
	X    string `json:"x"`
	Y    string `json:"y"`
}

//go:embed presets/*.json
var presetFiles embed.FS

var presets = sync.OnceValue(func() []Preset {
	files, err := presetFiles.ReadDir("presets") // by name
	if err != nil {
		panic(err)
	}
	var all []Preset
	for _, f := range files {
		more, err := readPresets(f.Name())
		if err != nil {
			panic(fmt.Sprintf("bench: presets/%s: %v", f.Name(), err)) // a programmer's mistake, which the tests find
		}
		all = append(all, more...)
	}
	return all
})

func readPresets(file string) (all []Preset, err error) {
	b, err := presetFiles.ReadFile("presets/" + file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	for i := range all {
		p := &all[i]
		if p.Like == "" {
			continue
		}
		at := slices.IndexFunc(all[:i], func(o Preset) bool { return o.Name == p.Like })
		if at < 0 {
			return nil, fmt.Errorf("%s is like %q, which does not come before it", p.Name, p.Like)
		}
		p.inherit(all[at])
	}
	return all, nil
}

// inherit takes the settings that p lacks from o.
func (p *Preset) inherit(o Preset) {
	fill(&p.Runs, o.Runs)
	fill(&p.Budgets, o.Budgets)
	fill(&p.Temperatures, o.Temperatures)
	fill(&p.Lengths, o.Lengths)
	fill(&p.Tables, o.Tables)
	fill(&p.Figures, o.Figures)
	p.Prompts = cmp.Or(p.Prompts, o.Prompts)
	p.WarmUp = cmp.Or(p.WarmUp, o.WarmUp)
	p.MaxTokens = cmp.Or(p.MaxTokens, o.MaxTokens)
	p.Measure = cmp.Or(p.Measure, o.Measure)
	p.NoController = p.NoController || o.NoController
	p.Memory = p.Memory || o.Memory
	p.Chat = p.Chat || o.Chat
}

// fill sets an empty list to another.
func fill[T any](list *[]T, other []T) {
	if *list == nil {
		*list = other
	}
}

// Presets lists the available experiments.
func Presets() []Preset { return slices.Clone(presets()) }

// LookupPreset finds an experiment by name.
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

// Expand expands the braces in texts: a{b,c}d is abd and acd.
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

// heads, in a preset's methods, stands for the folder of files made for the comparison: heads, token ranks.
const heads = "$heads"

// FindHeads puts dir, which has a folder for each head in grove train's layout, into the methods of
// p. Methods whose file does not exist are left out, and listed; it is an error if no drafter
// remains. Without a dir no file exists.
func (p *Preset) FindHeads(dir string) (missing []string, err error) {
	drafters := 0
	p.Runs = slices.Clone(p.Runs)
	for i := range p.Runs {
		var methods []string
		for _, m := range p.Runs[i].Methods {
			if _, at, ok := strings.Cut(m, heads); ok {
				end := strings.IndexAny(at, "@,)")
				if end < 0 {
					end = len(at)
				}
				file := dir + at[:end]
				if _, err := os.Stat(file); dir == "" || err != nil {
					if !slices.Contains(missing, file) {
						missing = append(missing, file)
					}
					continue
				}
				m = strings.ReplaceAll(m, heads, dir)
			}
			if m != Plain {
				drafters++
			}
			methods = append(methods, m)
		}
		p.Runs[i].Methods = methods
	}
	const compares = "it compares heads that are trained for it (docs/bench.md)"
	switch {
	case drafters > 0 || len(missing) == 0:
		return missing, nil
	case dir == "":
		return missing, fmt.Errorf("%s: name the folder that holds theirs with --trained", compares)
	}
	return missing, fmt.Errorf("%s, and none is there: want %s", compares, strings.Join(missing, ", "))
}
