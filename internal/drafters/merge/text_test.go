package merge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/testing/cases"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{ // the options, then the parts
		"lookup+best-first":                             {"", "lookup", "best-first"},
		"mode=disjoint,lookup:min=2+lm:shape=linear":    {"mode=disjoint,", "lookup:min=2", "lm:shape=linear"},
		"lookup:min=2,levels=3+lm:shape=fixed,d=4,b=2":  {"", "lookup:min=2,levels=3", "lm:shape=fixed,d=4,b=2"},
		" mode=spliced, a=1,lookup + lm ":               {" mode=spliced, a=1,", "lookup", "lm"},
		"(lm:model=c++.gguf)+lookup":                    {"", "lm:model=c++.gguf", "lookup"},
		"mode=disjoint,(lm:model=a(1)+b.gguf)+(lookup)": {"mode=disjoint,", "lm:model=a(1)+b.gguf", "lookup"},
		"a+b+c+d":                          {"", "a", "b", "c", "d"},
		"lm:model=/models/x(2.gguf+lookup": {"", "lm:model=/models/x(2.gguf", "lookup"},
		"lookup":                           {"", "lookup"},
	} {
		options, parts, err := split(text)
		if err != nil || !slices.Equal(append([]string{options}, parts...), want) {
			t.Errorf("%q: %q, %q, %v, want %q", text, options, parts, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                     "part 1 is empty",
		"lookup+":              "part 2 is empty",
		"+lookup":              "part 1 is empty",
		"a++b":                 "part 2 is empty",
		"mode=disjoint":        "comma and the parts",
		"mode=disjoint,":       "part 1 is empty",
		"mode=disjoint+lookup": "mode=disjoint",
		"a+(lm:x":              "part 2, (lm:x: its ( has no )",
		"(a)b+c":               "part 1, (a)",
		"()+a":                 "part 1 is empty",
	} {
		if _, _, err := split(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", text, err, want)
		}
	}
}

// Whatever a drafter is, with a part added it has that part once in addition to its own. Adding the
// part again changes nothing.
func TestAdding(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		one := rapid.SampledFrom([]string{"lookup", "lookup:min=2,levels=1", "eagle3", "eagle3:tree=best-first+text", "auto",
			"lm:model=c++.gguf", "jetspec+lookup", "lm:model=lookup.gguf", "best-first:a=1,b=2"})
		parts := []string{one.Draw(t, "drafter")}
		drafter := parts[0]
		if rapid.Bool().Draw(t, "merge") {
			parts = rapid.SliceOfN(one, 2, 5).Draw(t, "parts")
			drafter = "merge:" + rapid.SampledFrom([]string{"", "mode=disjoint,", "mode=spliced,"}).Draw(t, "options")
			for i, p := range parts {
				if i > 0 {
					drafter += "+"
				}
				drafter += bracketed(p)
			}
		}
		isLookup := func(p string) bool { name, _, _ := registry.Split(p); return name == "lookup" }
		got, err := Adding("lookup", drafter)
		if err != nil {
			t.Fatalf("%s: %v", drafter, err)
		}
		if again, err := Adding("lookup", got); err != nil || again != got {
			t.Fatalf("%s: %s, then %s, %v", drafter, got, again, err)
		}
		if slices.ContainsFunc(parts, isLookup) {
			if got != drafter {
				t.Fatalf("%s looks up and becomes %s", drafter, got)
			}
			return
		}
		_, text, _ := strings.Cut(got, ":")
		_, now, err := split(text)
		if want := append([]string{"lookup"}, parts...); err != nil || !slices.Equal(now, want) {
			t.Fatalf("%s becomes %s: parts %q, %v, want %q", drafter, got, now, err, want)
		}
	})
}

func TestOpen(t *testing.T) {
	target := registry.Target{Vocab: 50, Context: 100}
	for _, text := range []string{
		"merge:lookup+lookup", "merge:mode=disjoint,lookup:min=2+lookup:levels=2,floor=0.1",
		"merge:(lookup)+lookup:min=3+lookup",
	} {
		d, err := registry.New(text, target)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		s, err := d.Begin(draft.Options{Predicted: []int32{1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	for text, want := range map[string]string{
		"merge":                              "part 1 is empty",
		"merge:lookup":                       "1 parts: want 2 to 16",
		"merge:lookup+nobody":                "part 2: drafter \"nobody\"",
		"merge:lookup+lookup:min=0":          "part 2: drafter \"lookup:min=0\"",
		"merge:lookup:min=0+lookup":          "part 1: drafter \"lookup:min=0\"",
		"merge:mode=both,lookup+lookup":      "mode is \"both\": want disjoint, spliced or routed",
		"merge:shape=wide,lookup+lookup":     "\"shape\": there is no such option: want some of mode",
		"merge:lookup+merge:lookup+lookup":   "part 2, merge:lookup, is a merge itself",
		"merge:(merge:lookup+lookup)+lookup": "part 1, merge:lookup+lookup, is a merge itself",
		"merge:lookup+" + strings.Repeat("lookup+", 16) + "lookup": "18 parts",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", text, err, want)
		}
	}
	if _, err := registry.New("merge:lookup+lookup", registry.Target{}); err == nil {
		t.Error("a target without a vocabulary was accepted")
	}
	if _, err := New(Default(), 5, Part{Name: "a"}, Part{Name: "b"}); err == nil {
		t.Error("a part without a drafter was accepted")
	}
}

func FuzzOpen(f *testing.F) {
	for _, s := range []string{"lookup+lookup", "mode=disjoint,lookup:min=2+lookup", "(lookup)+((lookup))",
		"mode=,+,(", "=+=", "lookup+(lookup", "mode=disjoint,(lookup:min=2)+lookup)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := registry.New("merge:"+s, registry.Target{Vocab: 9})
		if err != nil {
			return
		}
		options, parts, err := split(s)
		if err != nil || len(parts) < 2 {
			t.Fatalf("%q was accepted as %q, %q, %v", s, options, parts, err)
		}
		if slices.ContainsFunc(parts, func(p string) bool { return !strings.HasPrefix(p, "lookup") }) {
			t.Fatalf("%q has parts %q", s, parts)
		}
		if _, err := d.Begin(draft.Options{}); err != nil {
			t.Fatal(err)
		}
	})
}

// What a part is told when a sequence begins, and what happens to the others if one refuses.
func TestBegin(t *testing.T) {
	a := &teller{}
	b := &teller{}
	c := &teller{}
	d, err := New(Default(), 9, Part{"a", a}, Part{"b", b}, Part{"c", c})
	if err != nil {
		t.Fatal(err)
	}
	o := draft.Options{Sampled: true, Seed: 7, Predicted: []int32{1, 2}}
	o.Sampling.Temperature, o.Sampling.Seed = 1, 9
	s, err := d.Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*teller{a, b, c} {
		got := p.begun
		if got.Sampled || got.Seed != 7 || got.Sampling.Seed != 9 || len(got.Predicted) != 2 {
			t.Errorf("a part was begun with %+v", got)
		}
	}
	s.Close()
	if a.open+b.open+c.open != 0 {
		t.Error("Close left a part's state open")
	}
	c.refuse = errors.New("no room")
	if _, err := d.Begin(o); !errors.Is(err, c.refuse) || !strings.Contains(err.Error(), "part 3, c") {
		t.Errorf("got %v", err)
	}
	if a.open+b.open != 0 {
		t.Error("a part's state was left open")
	}
}

// An error of a part is the merge's and says which part's it is; the next round continues.
func TestErrorsOfParts(t *testing.T) {
	ctx := context.Background()
	for _, mode := range []string{Spliced, Disjoint, Routed} {
		g := newGame(t, mode, 20, 3, &teller{luck: .5, width: 9}, &teller{luck: .5, width: 9})
		g.guide = &fakeGuide{chance: func(_ int, p float32) float32 { return p }}
		g.begin(2)
		for range 3 {
			g.round(ctx, 30, 5)
		}
		broken := g.parts[1]
		for name, breakIt := range map[string]func(){
			"refused":    func() { broken.refuse = errors.New("out of order") },
			"root":       func() { broken.otherRoot = true },
			"vocabulary": func() { broken.token = 20 },
			"rootless":   func() { broken.rootless = true },
		} {
			breakIt()
			err := g.propose(ctx, 30, 5, 0, 1)
			if err == nil || !strings.Contains(err.Error(), "part 2, part b") || broken.refuse != nil &&
				!errors.Is(err, broken.refuse) {
				t.Errorf("%s, %s: got %v", mode, name, err)
			}
			for _, s := range g.seqs {
				if s.tree.Len() != 1 || s.tree.Token[0] != s.root() {
					t.Errorf("%s, %s: left the tree\n%s", mode, name, s.tree)
				}
			}
			broken.refuse = nil
			broken.otherRoot = false
			broken.token = 0
			broken.rootless = false
			g.round(ctx, 30, 5)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := g.propose(cancelled, 30, 5, 0, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		g.round(ctx, 30, 5)

		first := g.parts[0] // the other part continues the text when one fails
		if err := g.propose(ctx, 30, 5, 0, 1); err != nil {
			t.Fatal(err)
		}
		first.refuseCommit = errors.New("forgot")
		if err := g.commit(0, 1); !errors.Is(err, first.refuseCommit) ||
			!strings.Contains(err.Error(), "part 1, part a") {
			t.Errorf("commit: %v", err)
		}
		g.inStep()
	}
}
