package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleReport returns a report made from measurements by hand: two prompts, one measured twice, with round figures.
func sampleReport() *SpecReport {
	o := SpecOptions{Temperatures: []float32{1}, Seeds: []uint64{0}, MaxTokens: 200}
	text := make([]int32, 160)
	for i := range text {
		text[i] = int32(i)
		if i >= 140 {
			text[i] = int32(i - 140) // it repeats itself
		}
	}
	ones := make([]int, len(text)-1)
	for i := range ones {
		ones[i] = 1
	}
	plain := func(n int) *generation {
		g := output(text[:n], ones[:n-1]...)
		g.stats = speculate.Stats{Rounds: n - 1, Verify: time.Duration(n-1) * time.Millisecond}
		g.finish = speculate.Length
		return g
	}
	tree := func(n int, rounds ...int) *generation {
		g := output(text[:n], rounds...)
		g.stats = speculate.Stats{
			Rounds: len(rounds), Plain: 1,
			Draft: time.Duration(len(rounds)) * 250 * time.Microsecond, Verify: time.Duration(
				len(rounds)) * 700 * time.Microsecond, Rest: time.Duration(len(rounds)) * 50 * time.Microsecond,
			Depths: []speculate.Depth{{Offered: 2, Tried: 2, Drafted: 4, Accepted: 2},
				{Offered: 2, Tried: 2, Drafted: 2, Accepted: 1}},
		}
		g.lists, g.listed = shortlist.Stats{Rows: 4, Tokens: 4000, Choices: 10, Listed: 9}, true
		g.finish = speculate.End
		return g
	}
	threes := make([]int, 53)
	for i := range threes {
		threes[i] = 3
	}
	other := tree(9, 4, 4)
	other.tokens = append([]int32{99}, other.tokens[1:]...)
	s := suiteRun{
		name: "go", sampling: sample.Params{Temperature: 1}, seeds: o.Seeds,
		run: &SpecRun{
			Suite: Suite{Name: "go", About: "functions"},
			Methods: []Method{
				{Name: "plain"}, {Name: "fixed", Drafter: "fixed:d=4,b=2+freq", Budget: 8}, {Name: "sampled",
					Drafter: "fixed:d=8,b=3", Accept: speculate.Rejection, Uncontrolled: true},
			},
		},
		warm: make([]encoded, 1), prompts: []encoded{{prompt: text[:40]}, {prompt: text[2:8]}}, cut: 1,
		cases: []measured{
			{{plain(160), plain(160)}, {tree(160, threes...), tree(160, threes...)}, {tree(160, threes...), tree(160, threes...)}},
			{{plain(9)}, {tree(9, 4, 2, 2)}, {other}},
		},
	}
	return &SpecReport{
		Setting: Setting{
			Machine: "a machine", Model: "small", Pad: 500e6, Padding: "from 8.6 M to 500.0 M parameters", Parameters: 500e6,
			WeightBytes: 1e9, Context: 2048, Threads: 4,
			Kernels: "avx2", Date: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC),
		},
		Draft: "smaller", DraftSize: 1_200_000, Temperature: o.Temperatures, TopP: 0.9, Seeds: o.Seeds,
		MaxTokens: o.MaxTokens, Repeats: 2,
		Bandwidth: []float64{40.5, 41}, Suites: []SuiteReport{s.report(&o)},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// The report's shape is a contract with the programs that read it; its figures follow from the measurements.
func TestReport(t *testing.T) {
	r := sampleReport()
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", append(b, '\n'))
	var text bytes.Buffer
	if err := r.Markdown(&text, []TableView{
		{Title: "Table 1", Columns: []string{"speed", "speedup", "over fixed", "peak"}},
		{Title: "Prediction", Columns: []string{"tau", "draft_ms", "verify_ms", "rest_ms", "predicted", "total",
			"alpha", "cost", "modelled", "published", "tau over fixed", "draft over fixed", "draft over none"}},
		{Title: "By depth", Depths: 5},
	}); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.md", text.Bytes())

	fixed := r.Suite("go").Method("fixed")
	if q := fixed.SpeedupQuartiles; fixed.Speedup != q[1] || math.Abs(q[0]-(8.0/3+(3-8.0/3)/4)) > 1e-9 {
		t.Errorf("speed-ups of 3 and 8/3 have quartiles %v", q)
	}
	if *fixed.Mismatches != 0 || r.Suite("go").Method("sampled").Mismatches != nil {
		t.Errorf("mismatches %v and %v", fixed.Mismatches, r.Suite("go").Method("sampled").Mismatches)
	}
	// A pass takes plain decoding 1 ms and the drafters 0.7, and their drafts 0.25.
	if math.Abs(fixed.Predicted-fixed.Tau/0.95) > 1e-9 || r.Suite("go").Method("plain").Predicted != 1 ||
		math.Abs(fixed.DraftMS+fixed.VerifyMS+fixed.RestMS-1) > 1e-9 {
		t.Errorf("predicted %+v", fixed)
	}
	// Of 12 children of accepted nodes that could be accepted 9 were; 6 of 109 rounds had trees of two levels.
	if want := (1 + 6./109*(.75+.75*.75)) / 1.25; fixed.Alpha != .75 || fixed.DraftCost != .25 ||
		math.Abs(fixed.Modelled-want) > 1e-9 {
		t.Errorf("α %g, γc %g, by Equation 2 %g, want %g", fixed.Alpha, fixed.DraftCost, fixed.Modelled, want)
	}
	for drafter, want := range map[string]string{"dynatree:d0=5,d-max=8": "100%", "fixed:b=3,d=8,tau=0.1": "70%",
		"linear:k=5": "140%", "lookup:d=3": "–", "best-first": "–", "dynatree": "–"} {
		m := MethodReport{Tau: 7, Drafter: drafter}
		if got := m.publishedAccept(); got != want {
			t.Errorf("the published acceptance of %s is %s, want %s", drafter, got, want)
		}
	}
	if fixed.ListSize != 1000 || fixed.Coverage != 0.9 {
		t.Errorf("shortlists of %g tokens that cover %g", fixed.ListSize, fixed.Coverage)
	}
	if fixed.Begin.Tokens+fixed.Rest.Tokens+3 != fixed.Tokens || fixed.Begin.Repeated != 0 ||
		math.Abs(fixed.Rest.Repeated-17.0/32) > 1e-9 {
		t.Errorf("parts %+v and %+v of %d tokens", fixed.Begin, fixed.Rest, fixed.Tokens)
	}
}

// Figures are valid pictures, whatever the report has.
func TestSave(t *testing.T) {
	r := sampleReport()
	dir := filepath.Join(t.TempDir(), "new")
	files, err := r.Save(dir, nil, []FigureView{{Name: "grid", X: "d", Y: "b"}, {Name: "none", X: "d", Y: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(f) {
		case ".png":
			if img, err := png.Decode(bytes.NewReader(b)); err != nil || img.Bounds().Dx() < 400 {
				t.Errorf("%s is no picture: %v", f, err)
			}
		case ".svg":
			if err := wellFormed(b); err != nil || !bytes.Contains(b, []byte("padded to 500 M")) {
				t.Errorf("%s: %v; it must be XML that says that the model is padded", f, err)
			}
		}
	}
	want := "report.json report.md"
	for _, f := range []string{"speedup", "go-tau-by-position", "go-tau-by-length", "go-speedup-by-length",
		"go-accept-by-depth", "go-grid"} {
		want += " " + f + ".png " + f + ".svg"
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	// An empty report, and one without a single speed, are drawn without errors.
	for _, r := range []*SpecReport{{}, {Suites: []SuiteReport{{Name: "a/b", Methods: []MethodReport{{Name: "plain"}}}}}} {
		if _, err := r.Figures(t.TempDir(), nil); err != nil {
			t.Error(err)
		}
	}
	// Files with the same name in several folders are suites with separate figures.
	other := *r
	other.Suites = nil
	for _, name := range []string{"a/q.jsonl", "b/q.jsonl"} {
		s := r.Suites[0]
		s.Name = name
		other.Suites = append(other.Suites, s)
	}
	if files, err := other.Figures(t.TempDir(), nil); err != nil || len(files) != 2+2*8 ||
		len(slices.Compact(slices.Sorted(slices.Values(files)))) != len(files) {
		t.Errorf("figures of two suites: %q, %v", files, err)
	}
}

// Methods that were run with several sizes of a shortlist are drawn as a line; a single one is not.
func TestSweep(t *testing.T) {
	s := SuiteReport{Name: "go"}
	for i, drafter := range []string{"", "eagle3+freq:size=64", "eagle3+freq:size=128", "eagle3+context", "eagle3"} {
		m := MethodReport{Name: fmt.Sprint("method ", i), Drafter: drafter, Tau: float64(i)}
		if strings.Contains(drafter, "shortlist") {
			m.ListSize, m.Coverage = 64*float64(i), 0.9
		}
		s.Methods = append(s.Methods, m)
	}
	r := &SpecReport{Suites: []SuiteReport{s}}
	files, err := r.Figures(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, f := range files {
		if !strings.Contains(f, "by-shortlist.svg") {
			continue
		}
		drawn++
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(">eagle3+freq<")) || bytes.Contains(b, []byte("context<")) {
			t.Errorf("%s does not have the line of freq, or has one of context", f)
		}
	}
	if drawn != 2 {
		t.Errorf("%d figures over shortlists among %v", drawn, files)
	}
}

func wellFormed(b []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{{0, 1}, {0, 2.3}, {0.97, 1.03}, {0, 1500}, {-3, 17}} {
		if n := len(ticks(c.low, c.high)); n < 4 || n > 10 {
			t.Errorf("%d marks from %g to %g", n, c.low, c.high)
		}
	}
}

// Equation 1 gives back the tokens of a round if nodes of all depths are equally likely to be
// accepted, even if the paths to most nodes end early: a path that has no more nodes was not rejected.
func TestModelOfTreesOfManyDepths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds, alpha = 200000, 0.9
	m := MethodReport{Drafter: "a tree", Rounds: rounds, Depths: make([]DepthReport, 8)}
	tokens := rounds
	for range rounds {
		for d := range m.Depths {
			m.Depths[d].Rounds++ // another branch continues
		}
		for d := 0; d < len(m.Depths) && rng.Float64() < 0.7; d++ {
			m.Depths[d].Tried++
			if rng.Float64() > alpha {
				break
			}
			m.Depths[d].Accepted++
			tokens++
		}
	}
	s := SuiteReport{Methods: []MethodReport{{VerifyMS: 1}, m}}
	s.model()
	got := &s.Methods[1]
	if tau := float64(tokens) / rounds; math.Abs(got.Alpha-alpha) > 0.01 || math.Abs(got.Modelled-tau) > 0.02 {
		t.Errorf("α %.3f and %.3f tokens a round: want %.3f and %.3f", got.Alpha, got.Modelled, alpha, tau)
	}
}

// A machine whose speed changes from round to round does not change the speed-ups, nor do outliers
// in fewer than half of the rounds: a method is compared with the plain decoding next to it.
func TestSpeedupsOnAnUnsteadyMachine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ratio := rapid.Float64Range(0.5, 8).Draw(r, "ratio")
		accidents := rapid.IntRange(0, 3).Draw(r, "accidents")
		s := suiteRun{cases: []measured{make(measured, 2)}}
		for i := range 2*accidents + 1 {
			round := 1e6 * rapid.Float64Range(1, 50).Draw(r, "ns of a round")
			times := [2]float64{round, round * 4 / ratio}
			if i < accidents {
				times[rapid.IntRange(0, 1).Draw(r, "whose")] *= rapid.Float64Range(1, 9).Draw(r, "slower")
			}
			for m, tokens := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1}, {4, 4}} {
				g := output(make([]int32, 9), tokens...)
				for k := range g.rounds {
					g.rounds[k].time = time.Duration(times[m])
				}
				s.cases[0][m] = append(s.cases[0][m], g)
			}
		}
		got := s.ratios(1, func(g *generation) float64 { return g.whole().perSecond() })
		if len(got) != 1 || math.Abs(got[0]/ratio-1) > 1e-4 {
			r.Fatalf("%v, want %g", got, ratio)
		}
	})
}
