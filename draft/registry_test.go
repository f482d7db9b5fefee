package draft

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if d := cmp.Diff(fakeOptions{N: 5, P: .25, On: true, Name: "x", fakeCommon: fakeCommon{9}}, o, cmp.AllowUnexported(fakeOptions{}, fakeCommon{})); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{"n": "n=VALUE", "n=two": "n=", "m=1": "n, p, on, name, size", "None=1": "None", "on=maybe": "on="} {
		err := Parse(text, &fakeOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want an error that says %q", text, err, want)
		}
	}
}

func TestRegistry(t *testing.T) {
	Register(Family{Name: "zz-test", Help: "nothing", Options: &fakeOptions{N: 7}, New: func(options string, target Target) (Drafter, error) {
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
	if d := cmp.Diff([]Option{{"n", 7, "how many"}, {"p", float32(0), ""}, {"on", false, ""}, {"name", "", ""}, {"size", 0, "how large"}}, options); d != "" {
		t.Error(d)
	}
	// A family for tests can be used and is not listed.
	Register(Family{Name: "zz-hidden", Test: true, New: func(string, Target) (Drafter, error) { return nil, errors.New("found") }})
	if _, err := New("zz-hidden", Target{}); err == nil || !strings.Contains(err.Error(), "found") {
		t.Errorf("a family for tests: %v", err)
	}
	if _, err := New("nobody", Target{}); err == nil || strings.Contains(err.Error(), "zz-hidden") || len(Families()) != len(list) {
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
