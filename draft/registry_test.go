package draft

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type fakeCommon struct {
	Size int `draft:"size" help:"how large"`
}

type fakeOptions struct {
	N    int     `draft:"n" help:"how many"`
	P    float32 `draft:"p"`
	On   bool    `draft:"on"`
	Name string  `draft:"name"`
	fakeCommon
	None int
}

func TestParse(t *testing.T) {
	o := fakeOptions{N: 3, Name: "x"}
	if err := Parse(" n = 5, p=0.25,on=true,size=9,", &o); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fakeOptions{N: 5, P: .25, On: true, Name: "x", fakeCommon: fakeCommon{9}}, o,
		cmp.AllowUnexported(fakeOptions{}, fakeCommon{})); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{"n": "n=VALUE", "n=two": "n=", "m=1": "n, p, on, name, size",
		"None=1": "None", "on=maybe": "on="} {
		err := Parse(text, &fakeOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want an error that says %q", text, err, want)
		}
	}
}

func TestRegistry(t *testing.T) {
	Register(Family{Name: "zz-test", Help: "nothing", Options: &fakeOptions{N: 7},
		New: func(options string, m Modifiers, target Target) (Drafter, error) {
			return nil, errors.New("got " + options)
		}})
	if _, err := New("zz-test:a=b:c", Target{}); err == nil || !strings.Contains(err.Error(), "got a=b:c") {
		t.Errorf("options did not arrive: %v", err)
	}
	if _, err := New("nobody", Target{}); err == nil || !strings.Contains(err.Error(), "zz-test") {
		t.Errorf("an unknown name: %v, want the known ones listed", err)
	}
	list := Families()
	f := list[len(list)-1]
	options := f.Listed()
	if d := cmp.Diff([]Option{{"n", 7, "how many"}, {"p", float32(0), ""}, {"on", false, ""}, {"name", "", ""},
		{"size", 0, "how large"}}, options); d != "" {
		t.Error(d)
	}
	// A family for tests can be used and is not listed.
	Register(Family{Name: "zz-hidden", Test: true, New: func(string, Modifiers, Target) (Drafter, error) {
		return nil,
			errors.New("found")
	}})
	if _, err := New("zz-hidden", Target{}); err == nil || !strings.Contains(err.Error(), "found") {
		t.Errorf("a family for tests: %v", err)
	}
	if _, err := New("nobody", Target{}); err == nil || strings.Contains(err.Error(), "zz-hidden") ||
		len(Families()) != len(list) {
		t.Errorf("a family for tests is listed: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second family of one name was accepted")
		}
	}()
	Register(Family{Name: "zz-test"})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "n=1", "p=NaN,on=1", "n=9999999999999999999", "=,=,", "name=a=b", "n=1,n=2", "on"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var o fakeOptions
		if err := Parse(s, &o); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		if o.None != 0 {
			t.Error("a field without a tag was set")
		}
	})
}

// A text comes apart at its pluses, but not at those within a path.
func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"eagle3":                           {"eagle3", ""},
		"eagle3:k=2,depth=3":               {"eagle3", "k=2,depth=3"},
		"eagle3+text":                      {"eagle3", "", "text"},
		"eagle3:k=2 + text + freq:size=64": {"eagle3", "k=2", "text", "freq:size=64"},
		"linear:model=c++/a+b.gguf,k=3+freq:ranks=x+y.gguf": {"linear", "model=c++/a+b.gguf,k=3",
			"freq:ranks=x+y.gguf"},
		"": {"", ""},
	} {
		name, options, modifiers := Split(text)
		if d := cmp.Diff(want, append([]string{name, options}, modifiers...)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

// A family gets the modifiers that it takes, and an error lists them where another is named.
func TestModifiers(t *testing.T) {
	var got Modifiers
	Register(Family{Name: "zz-modified", Test: true, Modifiers: []string{"text", "freq", "context"},
		New: func(_ string, m Modifiers, _ Target) (Drafter, error) {
			got = m
			return nil, nil
		}})
	if _, err := New("zz-modified+context:size=3,extra=4+text", Target{}); err != nil || !got.Text ||
		got.List.Method != "context" || got.List.Size != 3 || got.List.Extra != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := New("zz-modified", Target{}); err != nil || got != (Modifiers{}) {
		t.Errorf("without modifiers: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"zz-modified+dynaspec": "takes +text, +freq, +context", "zz-modified+text+text": "twice",
		"zz-modified+freq+context": "one shortlist",
		"zz-modified+freq:extra=3": "size, ranks", "zz-modified+text:n=3": "no options",
		"zz-test+text": "no modifiers", "text": "it is a modifier",
	} {
		if _, err := New(text, Target{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", text, err, want)
		}
	}
}

// Auto is the target's choice, or the first of the families' choices that can be made; modifiers
// stay.
func TestResolve(t *testing.T) {
	made := func(ok bool) func(string, Modifiers, Target) (Drafter, error) {
		return func(string, Modifiers, Target) (Drafter, error) {
			if !ok {
				return nil, errors.New("no head")
			}
			return nil, nil
		}
	}
	Register(Family{Name: "zz-first", Test: true, Auto: "zz-first", Rank: -2, New: made(false)})
	Register(Family{Name: "zz-second", Test: true, Auto: "zz-second:k=3+text", Rank: -1,
		Modifiers: []string{"text", "freq"}, New: made(true)})
	for text, want := range map[string]string{"auto": "zz-second:k=3+text",
		"auto+freq:size=9": "zz-second:k=3+text+freq:size=9", "zz-first": "zz-first"} {
		if got, err := Resolve(text, Target{}); got != want || err != nil {
			t.Errorf("%s is %q, %v: want %q", text, got, err, want)
		}
	}
	if got, err := Resolve("auto", Target{Auto: "lookup"}); got != "lookup" || err != nil {
		t.Errorf("the target's choice is %q, %v", got, err)
	}
	if _, err := New("auto:k=3", Target{}); err == nil || !strings.Contains(err.Error(), "no options") {
		t.Errorf("auto with options: %v", err)
	}
}

// Numbers of options outside the bounds that their help gives are refused, and no others are.
func TestCheckGoesByHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := struct {
			Count int     `draft:"count" help:"from a to b (2 to 16); 2: few"`
			Share float64 `draft:"share" help:"of all (0 to 1)"`
			Free  int     `draft:"free" help:"any number (1 or more)"`
		}{rapid.IntRange(-3, 30).Draw(t, "count"), rapid.SampledFrom([]float64{-0.1, 0, 0.5, 1, 1.1, math.NaN()}).Draw(t, "share"),
			rapid.Int().Draw(t, "free")}
		want := o.Count >= 2 && o.Count <= 16 && o.Share >= 0 && o.Share <= 1
		if err := Check(&o); (err == nil) != want {
			t.Fatalf("%+v: %v", o, err)
		}
	})
}
