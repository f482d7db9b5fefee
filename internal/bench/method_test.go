package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplitList(t *testing.T) {
	for _, c := range []struct {
		list string
		want []string
	}{
		{"plain,lookup", []string{"plain", "lookup"}},
		{" plain , lookup:min=3,branches=2,plain2", []string{"plain", "lookup:min=3,branches=2", "plain2"}},
		{"fixed:d={4,8},b=2@budget=32,linear:k=4@no-controller,dynatree", []string{"fixed:d={4,8},b=2@budget=32",
			"linear:k=4@no-controller", "dynatree"}},
		{"fixed:model=a.gguf,lookup", []string{"fixed:model=a.gguf", "lookup"}},
		{"go:chars=4,q.jsonl:field=x,chars=3,prose", []string{"go:chars=4", "q.jsonl:field=x,chars=3", "prose"}},
		{"merge:(fixed:d=2,b=3)+lookup,plain", []string{"merge:(fixed:d=2,b=3)+lookup", "plain"}},
		{",,", nil},
	} {
		if diff := cmp.Diff(c.want, SplitList(c.list)); diff != "" {
			t.Errorf("%q: %s", c.list, diff)
		}
	}
}

func TestParseMethods(t *testing.T) {
	base := Method{Budget: 16, Accept: "coupled"}
	got, err := ParseMethods([]string{"lookup", "fixed:d={4,8},b=2@budget=32@rejection",
		"dynatree@no-controller@name=ours", "jetspec@cached", "jetspec@resumed"}, base)
	if err != nil {
		t.Fatal(err)
	}
	want := []Method{
		{Name: "plain"},
		{Name: "lookup", Drafter: "lookup", Budget: 16, Accept: "coupled"},
		{Name: "fixed:d=4,b=2@budget=32@rejection", Drafter: "fixed:d=4,b=2", Budget: 32, Accept: "rejection"},
		{Name: "fixed:d=8,b=2@budget=32@rejection", Drafter: "fixed:d=8,b=2", Budget: 32, Accept: "rejection"},
		{Name: "ours", Drafter: "dynatree", Budget: 16, Accept: "coupled", Uncontrolled: true},
		{Name: "jetspec@cached", Drafter: "jetspec", Budget: 16, Accept: "coupled", Prefix: Cached},
		{Name: "jetspec@resumed", Drafter: "jetspec", Budget: 16, Accept: "coupled", Prefix: Resumed},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Methods as published: with the paper's options wherever their text gives none.
	if got, err = ParseMethods([]string{"dynatree@paper", "dynatree:b-root=3,d0=4@paper",
		"eagle3+dynaspec:size=64,own=false@paper",
		"falcon+text@paper@coupled", "merge:lookup+dynatree@paper@budget=8"}, Method{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Method{
		{Name: "plain"},
		{Name: "dynatree@paper", Drafter: "dynatree:b-root=1", Accept: "rejection", Uncontrolled: true},
		{Name: "dynatree:b-root=3,d0=4@paper", Drafter: "dynatree:b-root=3,d0=4", Accept: "rejection", Uncontrolled: true},
		{Name: "eagle3+dynaspec:size=64,own=false@paper", Drafter: "eagle3+dynaspec:size=64,own=false,extra=-1",
			Accept: "rejection", Uncontrolled: true},
		{Name: "falcon+text@paper@coupled", Drafter: "falcon:tree=static+text", Accept: "coupled", Uncontrolled: true},
		{Name: "merge:lookup+dynatree@paper@budget=8", Drafter: "merge:lookup+dynatree", Budget: 8,
			Accept: "rejection", Uncontrolled: true},
	}, got); diff != "" {
		t.Error(diff)
	}
	// Settings after the name are added to it, so that a named method can be crossed with them.
	crossed := Cross([]string{"plain", "lookup@name=ours", "dynatree@budget=8"},
		[]string{"budget=4", "budget=6"}, "budget=")
	if got, err = ParseMethods(crossed, Method{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Method{
		{Name: "plain"}, {Name: "ours@budget=4", Drafter: "lookup", Budget: 4}, {Name: "ours@budget=6",
			Drafter: "lookup", Budget: 6},
		{Name: "dynatree@budget=8", Drafter: "dynatree", Budget: 8},
	}, got); diff != "" {
		t.Error(diff)
	}
	for _, m := range got[1:3] {
		if r := (MethodReport{Name: m.Name, Budget: m.Budget}); r.budgetLine() != "ours" {
			t.Errorf("%s is on the line %q", m.Name, r.budgetLine())
		}
	}
	// A shortlist may follow the drafter's name, and stays in the row's name.
	if got, err = ParseMethods(SplitList("eagle3+freq,eagle3+context:size=64,extra={8,9}@budget=5,merge:jetspec+lookup"),
		Method{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Method{
		{Name: "plain"}, {Name: "eagle3+freq", Drafter: "eagle3+freq"},
		{Name: "eagle3+context:size=64,extra=8@budget=5", Drafter: "eagle3+context:size=64,extra=8", Budget: 5},
		{Name: "eagle3+context:size=64,extra=9@budget=5", Drafter: "eagle3+context:size=64,extra=9", Budget: 5},
		{Name: "merge:jetspec+lookup", Drafter: "merge:jetspec+lookup"},
	}, got); diff != "" {
		t.Error(diff)
	}
	for text, line := range map[string]string{
		"eagle3+freq:size=64": "eagle3+freq", "eagle3:k=2": "", "eagle3+text": "", "eagle3+freq": "eagle3+freq",
		"eagle3:k=2+text+dynaspec:size=64,extra=-1": "eagle3:k=2+text+dynaspec:extra=-1",
		"merge:jetspec+lookup":                      "", "merge:lookup+dynatree:d0=5": "", "eagle3+adapt": "",
	} {
		if r := (MethodReport{Drafter: text}); r.listLine() != line {
			t.Errorf("%s is on the line %q, want %q", text, r.listLine(), line)
		}
	}
	// Plain decoding is added once, and takes no settings from the others.
	if got, err = ParseMethods([]string{"lookup", "plain"}, base); err != nil ||
		!slices.Equal(got, []Method{want[1], want[0]}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, problem := range map[string]string{
		"": "no drafter", "lookup@budget=1": "@budget=1", "lookup@budget": "2 or more", "lookup@fast": "no setting @fast",
		"a{b": "{ without }", "a}": "} without {",
		"a{b{c}}": "{ without }", "plain@budget=4": "no settings", "lookup@name=": "@name= is empty",
		"x@name=plain": "plain decoding's name",
		"a{1,2,3,4,5,6}{1,2,3,4,5,6}{1,2,3,4,5,6}": "more than 200",
	} {
		if _, err := ParseMethods([]string{text}, base); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want something with %q", text, err, problem)
		}
	}
	if _, err := ParseMethods([]string{"lookup", "lookup"}, base); err == nil ||
		!strings.Contains(err.Error(), "@name=NAME") {
		t.Errorf("two of one name: %v", err)
	}
}

// A method written out reads as the same method.
func TestMethodString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Method{
			Drafter:      rapid.SampledFrom([]string{"lookup", "lookup:min=3", "fixed:d=4"}).Draw(t, "drafter"),
			Budget:       rapid.SampledFrom([]int{0, 2, 300}).Draw(t, "budget"),
			Accept:       rapid.SampledFrom([]string{"", "coupled", "rejection"}).Draw(t, "accept"),
			Uncontrolled: rapid.Bool().Draw(t, "uncontrolled"),
			Prefix:       rapid.SampledFrom([]string{"", Cached, Resumed}).Draw(t, "prefix"),
			Memory:       rapid.Bool().Draw(t, "memory"),
		}
		m.Name = m.String()
		if got, err := ParseMethod(m.String(), Method{}); err != nil || got != m {
			t.Errorf("%q is read as %+v, %v", m.String(), got, err)
		}
	})
}

// The number of methods that braces stand for is the product of their choices.
func TestExpand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := "", 1
		for range rapid.IntRange(0, 3).Draw(t, "braces") {
			n := rapid.IntRange(1, 4).Draw(t, "choices")
			text += "k={" + strings.Repeat("a,", n-1) + "a},"
			want *= n
		}
		got, err := expand(text)
		if err != nil || len(got) != want || strings.ContainsAny(strings.Join(got, ""), "{}") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	})
}

func FuzzParseMethods(f *testing.F) {
	for _, text := range []string{"plain", "lookup:min=3@budget=4", "a{b,c}d{e}", "@@@", "{", "@name=x", "x@name=a@b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		methods, err := ParseMethods(SplitList(text), Method{})
		if err == nil && !slices.ContainsFunc(methods, func(m Method) bool { return m.Drafter == "" }) {
			t.Errorf("%q: no plain decoding in %v", text, methods)
		}
	})
}
