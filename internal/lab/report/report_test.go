package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/models"
)

// Experiments can be read, and have names of their own, known kinds and metrics, methods that can
// be read, and full tables.
func TestExperiments(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Experiments() {
		if seen[e.Name] || e.Title == "" || e.About == "" || len(e.Suites) == 0 || len(e.Methods) == 0 {
			t.Errorf("%q has no name of its own, no title, no text, no suites or no methods", e.Name)
		}
		seen[e.Name] = true
		switch e.Kind {
		case "":
			if _, err := bench.ParseMethods(e.Methods, bench.Method{}); err != nil || len(e.Budgets) == 0 ||
				len(e.Temperatures) == 0 {
				t.Errorf("%s: budgets %v, temperatures %v, methods: %v", e.Name, e.Budgets, e.Temperatures, err)
			}
			if _, _, err := new(bench.SpecReport).Cells(e.Columns); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		case kindAdapt, kindServe:
		default:
			t.Errorf("%s is of kind %q", e.Name, e.Kind)
		}
		for _, o := range e.Orders {
			if _, ok := metrics[o.Metric]; !ok || len(o.Methods) < 2 {
				t.Errorf("%s: order of %v by %q", e.Name, o.Methods, o.Metric)
			}
		}
		if p := e.Paper; p != nil {
			for _, row := range p.Rows {
				if len(row.Values) != len(p.Columns) {
					t.Errorf("%s: the paper's %s has %d values for %d columns", e.Name, row.Name, len(row.Values), len(p.Columns))
				}
			}
		}
	}
}

// An experiment with the name of a preset draws the preset's trees: methods of one name have the same options. What
// orders compare is measured.
func TestExperimentsArePresets(t *testing.T) {
	parse := func(texts []string) []bench.Method {
		methods, err := bench.ParseMethods(texts, bench.Method{})
		if err != nil {
			t.Fatal(err)
		}
		return methods
	}
	options := map[string]bool{} // experiment, name, drafter and budget, in presets
	named := map[string]bool{}   // experiment and name
	for _, p := range bench.Presets() {
		for _, run := range p.Runs {
			for _, m := range parse(run.Methods) {
				named[p.Name+" "+m.Name] = true
				options[fmt.Sprint(p.Name, " ", m.Name, m.Drafter, m.Budget)] = true
			}
		}
	}
	for _, e := range Experiments() {
		if e.Kind != "" {
			continue
		}
		measured := map[string]bool{}
		for _, m := range parse(e.Methods) {
			measured[m.Name] = true
			if named[e.Name+" "+m.Name] && !options[fmt.Sprint(e.Name, " ", m.Name, m.Drafter, m.Budget)] {
				t.Errorf("%s: %s drafts with %q and %d nodes, which the preset does not", e.Name, m.Name, m.Drafter, m.Budget)
			}
		}
		for _, o := range e.Orders {
			for _, name := range o.Methods {
				if !measured[name] {
					t.Errorf("%s: the order of %v names %s, which is not measured", e.Name, o.Methods, name)
				}
			}
		}
	}
}

// An order holds on a suite where no figure is below its predecessor's by more than the tolerance.
func TestJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		r := &Result{Spec: &bench.SpecReport{}}
		want, compared := 0, 0
		for i := range rapid.IntRange(0, 4).Draw(t, "suites") {
			s := bench.SuiteReport{Name: fmt.Sprint("suite", i)}
			var values []float64
			for _, name := range names {
				if rapid.Bool().Draw(t, "there") {
					tau := rapid.Float64Range(1, 4).Draw(t, "tau")
					values = append(values, tau)
					s.Methods = append(s.Methods, bench.MethodReport{Name: name, Tau: tau})
				}
			}
			if len(values) > 1 {
				compared++
				holds := true
				for i := range values[1:] {
					holds = holds && values[i+1] >= values[i]*0.98
				}
				if holds {
					want++
				}
			}
			r.Spec.Suites = append(r.Spec.Suites, s)
		}
		f := r.judge(Order{Metric: "tau", Methods: names, Reason: "Because."})
		if f.Holds != want || f.Compared != compared {
			t.Fatalf("holds in %d of %d: want %d of %d: %s", f.Holds, f.Compared, want, compared, f.Text)
		}
		if strings.Contains(f.Text, "Because.") != (want < compared) {
			t.Fatalf("the reason stands where it holds, or not where it does not: %s", f.Text)
		}
	})
}

// A run writes a page without references to other files. A second run takes what is there; another size does not.
func TestRun(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 2, HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt": "func main() {"}`+"\n"+`{"prompt": "one two one two"}`+"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	experiments := []Experiment{
		{Name: "trees", Title: "Trees", About: "Trees <b>of</b> heads.", Suites: []string{prompts, "no-such-suite"},
			Methods: []string{"plain", "jetspec", "fixed"}, Budgets: []int{4, 8},
			Temperatures: []float32{0}, Columns: []string{"tau", "times"}, Figures: []string{"tau-by-budget"},
			Orders: []Order{{Metric: "tau", Methods: []string{"plain", "jetspec"}}}},
		{Name: "callers", Title: "Callers", Kind: kindServe, Suites: []string{prompts}, Methods: []string{"plain"},
			Clients: []int{1, 2}},
	}
	quickSize, fullSize = size{Prompts: 2, Tokens: 8, Requests: 1, Rounds: 1, Length: 8}, size{Prompts: 1, Tokens: 6,
		Requests: 1, Rounds: 1, Length: 8}
	var taken []string
	o := Options{Model: m, ModelName: `<script>"a"</script>`, Version: "test", Dir: filepath.Join(t.TempDir(), "report"),
		Quick: true,
		Log:   func(format string, args ...any) { taken = append(taken, fmt.Sprintf(format, args...)) }}
	run := func() *Report {
		t.Helper()
		taken = nil
		r, err := Run(t.Context(), o, experiments)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Results) != 2 {
			t.Fatalf("%d results, want 2", len(r.Results))
		}
		return r
	}
	first := run()
	if len(taken) != 0 {
		t.Errorf("a first run took results: %q", taken)
	}
	page, err := os.ReadFile(filepath.Join(o.Dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"suite no-such-suite: ", "fixed: ", "jetspec@budget=8", "Trees &lt;b&gt;of", "<svg",
		"&lt;script&gt;", `id="callers"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, not := range []string{"<script", "src=", "<link", "@import", "url("} {
		if strings.Contains(string(page), not) {
			t.Errorf("the page has %q", not)
		}
	}
	if f := first.Results[0].Findings; len(f) != 1 || f[0].Compared != 2 {
		t.Errorf("one order at two budgets: %+v", f)
	}
	again := run()
	if len(taken) != 2 {
		t.Errorf("a second run took %q: want both results", taken)
	}
	a, _ := json.Marshal(first.Results)
	if b, _ := json.Marshal(again.Results); string(a) != string(b) {
		t.Error("the results that were taken differ from those that were written")
	}
	o.Quick = false
	run()
	if len(taken) != 0 {
		t.Errorf("another size took %q", taken)
	}
	o.Opened = []string{prompts, "--kv q8_0"} // any file
	run()
	if len(taken) != 0 {
		t.Errorf("a model that was opened otherwise took %q", taken)
	}
	for _, step := range []struct {
		changed time.Time
		want    int
	}{{time.Unix(1e9, 0), 0}, {time.Unix(1e9, 0), 2}, {time.Unix(1e9+1, 0), 0}} {
		if err := os.Chtimes(prompts, step.changed, step.changed); err != nil {
			t.Fatal(err)
		}
		run()
		if len(taken) != step.want {
			t.Errorf("with a file that changed at %v: took %q, want %d results", step.changed, taken, step.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Quick = true
	if r, err := Run(ctx, o, append(slices.Clone(experiments), Experiment{Name: "third", Suites: []string{prompts},
		Methods: []string{"plain", "jetspec"},
		Budgets: []int{4}, Temperatures: []float32{0}})); !errors.Is(err, context.Canceled) || len(r.Results) != 0 {
		t.Errorf("a cancelled run: %d results, %v", len(r.Results), err)
	}
}
