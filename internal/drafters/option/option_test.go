package option_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/option"
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
	if err := option.Parse(" n = 5, p=0.25,on=true,size=9,", &o); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fakeOptions{N: 5, P: .25, On: true, Name: "x", fakeCommon: fakeCommon{9}}, o,
		cmp.AllowUnexported(fakeOptions{}, fakeCommon{})); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{"n": "n=VALUE", "n=two": "n=", "m=1": "n, p, on, name, size",
		"None=1": "None", "on=maybe": "on="} {
		err := option.Parse(text, &fakeOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want an error that says %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "n=1", "p=NaN,on=1", "n=9999999999999999999", "=,=,", "name=a=b", "n=1,n=2", "on"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var o fakeOptions
		if err := option.Parse(s, &o); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		if o.None != 0 {
			t.Error("a field without a tag was set")
		}
	})
}

// Option values outside the bounds that their help gives are refused, and no others are.
func TestCheckGoesByHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := struct {
			Count int     `draft:"count" help:"from a to b (2 to 16); 2: few"`
			Share float64 `draft:"share" help:"of all (0 to 1)"`
			Free  int     `draft:"free" help:"any number (1 or more)"`
		}{rapid.IntRange(-3, 30).Draw(t, "count"), rapid.SampledFrom([]float64{-0.1, 0, 0.5, 1, 1.1, math.NaN()}).Draw(t,
			"share"),
			rapid.Int().Draw(t, "free")}
		want := o.Count >= 2 && o.Count <= 16 && o.Share >= 0 && o.Share <= 1
		if err := option.Check(&o); (err == nil) != want {
			t.Fatalf("%+v: %v", o, err)
		}
	})
}
