package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/sample"
)

// trainedFiles returns a folder with the files that presets name, each made from the target's head of that family.
func trainedFiles(t *testing.T, target registry.Target, shape synth.Shape) string {
	t.Helper()
	dir := t.TempDir()
	link := func(from, to string) {
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, to); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	ranks := filepath.Join(dir, "ranks.gguf")
	if err := shortlist.Rank(make([]int64, target.Vocab), target.Model.Tokenizer, "nothing").WriteFile(ranks); err != nil {
		t.Fatal(err)
	}
	draft := filepath.Join(dir, "draft.gguf")
	if err := synth.Write(context.Background(), draft, shape, synth.Options{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	for _, p := range Presets() {
		for _, r := range p.Runs {
			for _, m := range r.Methods {
				_, at, ok := strings.Cut(m, heads)
				if !ok {
					continue
				}
				at = at[:strings.Index(at, ".gguf")+len(".gguf")]
				switch {
				case strings.HasPrefix(at, "/ranks-"):
					link(ranks, dir+at)
				case strings.HasPrefix(at, "/draft-model"):
					link(draft, dir+at)
				case strings.HasPrefix(at, "/bidirectional"):
					link(target.Heads[1].Name, dir+at)
				case strings.Contains(m, "eagle3"):
					link(target.Heads[2].Name, dir+at)
				case strings.HasPrefix(m, "specblock"):
					link(target.Heads[3].Name, dir+at)
				default:
					drafter, _, _ := strings.Cut(m, ":")
					named := func(h registry.Head) bool { return filepath.Base(h.Name) == drafter+".gguf" }
					link(target.Heads[max(0, slices.IndexFunc(target.Heads, named))].Name, dir+at) // or a causal head
				}
			}
		}
	}
	return dir
}

// Presets are data: every one of them names methods, columns and suites that exist.
func TestPresets(t *testing.T) {
	// with a vocabulary as large as the embedded target's: presets have sizes of shortlists
	shape := synth.Shape{
		Name: "wide", Arch: "qwen3", Vocab: 1 << 14, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 16, Tied: true, Tokens: synth.Qwen2,
	}
	target := pairOf(t, shape)
	trained := trainedFiles(t, target, shape)
	b := &bench{o: SpecOptions{Target: target}}
	known := strings.Fields("go edit math prose wikitext wikitext-articles mt_bench gsm8k humaneval alpaca qa sum")
	for _, p := range Presets() {
		if p.Help == "" {
			t.Errorf("%+v", p)
		}
		if p.Measure != "" && p.Measure != MeasureFaithful {
			t.Errorf("%s measures %q", p.Name, p.Measure)
		}
		if p.Prompts < 2 || p.MaxTokens < 32 || p.MaxTokens > 1500 || len(p.Runs) == 0 || p.WarmUp == nil {
			t.Errorf("%+v", p)
		}
		if missing, err := p.FindHeads(trained); err != nil || len(missing) > 0 {
			t.Errorf("%s: %v, %v", p.Name, missing, err)
		}
		for _, r := range p.Runs {
			all, err := ParseMethods(r.Methods, Method{Uncontrolled: p.NoController})
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			for _, m := range all {
				if _, err := b.lane(m, sample.Params{}, nil); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
			suites, err := Expand(r.Suites)
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			for _, s := range suites {
				if q, err := parseQuery(s); err != nil || !slices.Contains(known, q.name) {
					t.Errorf("%s: suite %q: %v", p.Name, s, err)
				}
			}
			for _, f := range p.Figures {
				x, y := 0, 0
				for _, m := range all {
					if _, ok := m.option(f.X); ok {
						x++
					}
					if _, ok := m.option(f.Y); ok {
						y++
					}
				}
				if x < 2 || y < 2 {
					t.Errorf("%s: figure %s has %d methods with %s and %d with %s", p.Name, f.Name, x, f.X, y, f.Y)
				}
			}
		}
		for _, table := range p.Tables {
			if (table.Depths > 0) == (len(table.Columns) > 0) {
				t.Errorf("%s: table %q has columns or depths", p.Name, table.Title)
			}
			for _, c := range table.Columns {
				if _, err := lookColumn(c); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
		}
	}
	if _, err := LookupPreset("nothing"); err == nil || !strings.Contains(err.Error(), "dynatree-table1") {
		t.Errorf("a preset that is not there: %v", err)
	}
	if five, err := LookupPreset("dynatree-table5"); err != nil || !five.Memory || len(five.Runs) != 2 || *five.WarmUp != 0 {
		t.Errorf("%+v, %v", five, err)
	}
}

// Of the heads that a preset compares, those that exist take part; the others are named, and it is
// an error if none exists.
func TestFindHeads(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "causal", "model-q8_0.gguf", "a head")
	p, err := LookupPreset("jetspec-table4")
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(p.Runs[0].Methods)
	missing, err := p.FindHeads(dir)
	if err != nil || len(missing) != 2 || !strings.HasPrefix(missing[0], dir) || len(p.Runs[0].Methods) != 2 {
		t.Errorf("missing %v, %v; methods %v", missing, err, p.Runs[0].Methods)
	}
	if want := "jetspec:model=" + dir + "/causal/model-q8_0.gguf@name=forward KL"; p.Runs[0].Methods[1] != want {
		t.Errorf("method %q, want %q", p.Runs[0].Methods[1], want)
	}
	for dir, want := range map[string]string{"": "--trained", t.TempDir(): "none is there"} {
		p, _ := LookupPreset("jetspec-table4")
		if !slices.Equal(p.Runs[0].Methods, before) {
			t.Errorf("the preset itself has changed: %v", p.Runs[0].Methods)
		}
		if _, err := p.FindHeads(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("heads of %q: %v, want something with %q", dir, err, want)
		}
	}
	// Missing files are no loss to presets that have other drafters left.
	p = Preset{Runs: []PresetRun{{Methods: []string{"plain", "lookup", "linear:ranks=$heads/ranks.gguf,k=3@name=ranked",
		"merge:lookup+(linear:ranks=$heads/ranks.gguf)@name=both"}}}}
	for _, dir := range []string{"", dir} {
		q := p
		if missing, err := q.FindHeads(dir); err != nil || !slices.Equal(missing, []string{dir + "/ranks.gguf"}) ||
			!slices.Equal(q.Runs[0].Methods, []string{"plain", "lookup"}) {
			t.Errorf("of %q missing %v, %v; methods %v", dir, missing, err, q.Runs[0].Methods)
		}
	}
	p, _ = LookupPreset("dynatree-table1")
	if p.Name == "" {
		t.Fatal("no dynatree-table1")
	}
	if missing, err := p.FindHeads(""); err != nil || missing != nil {
		t.Errorf("a preset without heads: %v, %v", missing, err)
	}
}

// If a preset compares the fixed tree with DynaTree, either both drop leaves below their thresholds
// or neither does, and the preset says so.
func TestTreesThatAreComparedArePrunedAlike(t *testing.T) {
	for _, p := range Presets() {
		for _, run := range p.Runs {
			var pruned []string // "true" or "false", from the first method of each kind
			for _, kind := range []string{"fixed:", "dynatree:"} {
				for _, m := range run.Methods {
					if m, _, _ := strings.Cut(m, "@"); strings.HasPrefix(m, kind) {
						_, after, said := strings.Cut(m, "prune=")
						switch value, _, _ := strings.Cut(after, ","); {
						case said:
							pruned = append(pruned, value)
						case kind == "fixed:":
							t.Errorf("%s: %s does not say whether it is pruned", p.Name, m)
						default:
							pruned = append(pruned, strconv.FormatBool(grow.DefaultDynaTree().Prune))
						}
						break
					}
				}
			}
			if len(pruned) == 2 && pruned[0] != pruned[1] {
				t.Errorf("%s: the fixed tree has prune=%s, DynaTree prune=%s", p.Name, pruned[0], pruned[1])
			}
		}
	}
}
