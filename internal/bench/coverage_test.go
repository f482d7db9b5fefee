package bench

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No list is better than the oracle of its size, all tokens are as good as it gets, and figures of steps and of all agree.
func TestCoverage(t *testing.T) {
	target := tinyPair(t)
	list := "eagle3,eagle3+freq:size=64,eagle3+freq:size=300,eagle3+freq-pa:size=600,eagle3+context:size=64,extra=64,eagle3+dynaspec-fixed,eagle3+dynaspec"
	r, err := Coverage(context.Background(), CoverageOptions{
		Target: target, Runs: []SpecRun{{tinySuite("s", 2), methods(t, list)}}, MaxTokens: 40, Every: 5, Steps: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Suites[0]
	if len(r.Suites) != 1 || s.Prompts != 2 || s.Places < 4 || s.Places > 16 || len(s.Methods) != 7 {
		t.Fatalf("%+v", r)
	}
	at := func(name string) CoverageMethod {
		for _, m := range s.Methods {
			if m.Name == name {
				return m
			}
		}
		t.Fatalf("there is no %s", name)
		return CoverageMethod{}
	}
	for _, m := range s.Methods {
		length, path, size := 1.0, 1.0, 0.0
		for k, c := range append(m.ByStep, m.CoverageMean) {
			if c.Coverage > c.Oracle+1e-6 || c.Accept > c.Coverage+1e-6 || c.OracleAccept > c.Oracle+1e-6 || !(c.Coverage > 0) || c.Size < 1 || c.Size > 1000 {
				t.Errorf("%s, step %d: %+v", m.Name, k, c)
			}
		}
		for _, c := range m.ByStep {
			path *= c.Accept
			length += path
			size += c.Size / 4
		}
		if len(m.ByStep) != 4 || math.Abs(length-m.Length) > 1e-9 || math.Abs(size-m.Size) > 1e-6 {
			t.Errorf("%s: %d steps, drafts of %g tokens, want %g; lists of %g, want %g", m.Name, len(m.ByStep), m.Length, length, m.Size, size)
		}
	}
	all := at("eagle3")
	if all.Size != 1000 || math.Abs(all.Coverage-1) > 1e-4 || math.Abs(all.Accept-all.OracleAccept) > 1e-6 {
		t.Errorf("all tokens: %+v", all)
	}
	if small, large := at("eagle3+freq:size=64"), at("eagle3+freq:size=300"); small.Coverage >= large.Coverage || small.Size >= large.Size {
		t.Errorf("a longer list covers no more: %+v, %+v", small, large)
	}
	for _, pair := range [][2]string{{"eagle3+freq:size=64", "eagle3+freq-pa:size=600"}, {"eagle3+dynaspec-fixed", "eagle3+dynaspec"}} {
		fixed, aware := at(pair[0]).ByStep, at(pair[1]).ByStep
		if math.Abs(fixed[0].Size-fixed[3].Size) > 20 || math.Abs(aware[0].Size-aware[1].Size) > 20 || aware[2].Size >= aware[1].Size || aware[3].Size > aware[2].Size+20 {
			t.Errorf("sizes by step: %+v, %+v", fixed, aware)
		}
	}
	var text bytes.Buffer
	if err := r.Markdown(&text); err != nil || !strings.Contains(text.String(), "| eagle3+dynaspec | ") {
		t.Errorf("%v\n%s", err, &text)
	}
	dir := t.TempDir()
	if _, err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "s-coverage-by-size.svg"))
	if err != nil || !bytes.Contains(b, []byte(">oracle<")) {
		t.Errorf("%v, the figure has no oracle", err)
	}
}

func TestCoverageRefuses(t *testing.T) {
	target := tinyPair(t)
	for list, want := range map[string]string{"lookup": "want eagle3", "eagle3:tree=linear": "want eagle3 with a shortlist", "eagle3+oak": "takes +text", "eagle3+freq:size=5000": "size=5000", "plain": "no drafter"} {
		_, err := Coverage(context.Background(), CoverageOptions{Target: target, Runs: []SpecRun{{tinySuite("s", 1), methods(t, list)}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something with %q", list, err, want)
		}
	}
	if _, err := Coverage(context.Background(), CoverageOptions{}); err == nil {
		t.Error("no target, no error")
	}
	target.Heads = nil
	if _, err := Coverage(context.Background(), CoverageOptions{Target: target}); err == nil || !strings.Contains(err.Error(), "EAGLE-3 head") {
		t.Errorf("no head: %v", err)
	}
}
