package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
)

type fakeOptions struct {
	N int `draft:"n" help:"how many"`
}

func TestRegistry(t *testing.T) {
	registry.Register(registry.Family{Name: "zz-test", Help: "nothing", Options: &fakeOptions{N: 7},
		New: func(options string, m registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			return nil, errors.New("got " + options)
		}})
	if _, err := registry.New("zz-test:a=b:c", registry.Target{}); err == nil || !strings.Contains(err.Error(), "got a=b:c") {
		t.Errorf("options did not arrive: %v", err)
	}
	if _, err := registry.New("nobody", registry.Target{}); err == nil || !strings.Contains(err.Error(), "zz-test") {
		t.Errorf("an unknown name: %v, want the known ones listed", err)
	}
	list := registry.Families()
	f := list[len(list)-1]
	options := f.Listed()
	if d := cmp.Diff([]option.Option{{Key: "n", Default: 7, Help: "how many"}}, options); d != "" {
		t.Error(d)
	}
	// A family for tests can be used and is not listed.
	registry.Register(registry.Family{Name: "zz-hidden", Test: true, New: func(string, registry.Modifiers,
		registry.Target) (draft.Drafter, error) {
		return nil,
			errors.New("found")
	}})
	if _, err := registry.New("zz-hidden", registry.Target{}); err == nil || !strings.Contains(err.Error(), "found") {
		t.Errorf("a family for tests: %v", err)
	}
	if _, err := registry.New("nobody", registry.Target{}); err == nil || strings.Contains(err.Error(), "zz-hidden") ||
		len(registry.Families()) != len(list) {
		t.Errorf("a family for tests is listed: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second family of one name was accepted")
		}
	}()
	registry.Register(registry.Family{Name: "zz-test"})
}

// A text is split at its pluses, but not at those within a path.
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
		name, options, modifiers := registry.Split(text)
		if d := cmp.Diff(want, append([]string{name, options}, modifiers...)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

// A family receives the modifiers that it accepts. If another one is named, an error lists them.
func TestModifiers(t *testing.T) {
	var got registry.Modifiers
	registry.Register(registry.Family{Name: "zz-modified", Test: true, Modifiers: []string{"text", "freq", "context"},
		New: func(_ string, m registry.Modifiers, _ registry.Target) (draft.Drafter, error) {
			got = m
			return nil, nil
		}})
	if _, err := registry.New("zz-modified+context:size=3,extra=4+text", registry.Target{}); err != nil || !got.Text ||
		got.List.Method != "context" || got.List.Size != 3 || got.List.Extra != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := registry.New("zz-modified", registry.Target{}); err != nil || got != (registry.Modifiers{}) {
		t.Errorf("without modifiers: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"zz-modified+dynaspec": "takes +text, +freq, +context", "zz-modified+text+text": "twice",
		"zz-modified+freq+context": "one shortlist",
		"zz-modified+freq:extra=3": "size, ranks", "zz-modified+text:n=3": "no options",
		"zz-test+text": "no modifiers", "text": "it is a modifier",
	} {
		if _, err := registry.New(text, registry.Target{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", text, err, want)
		}
	}
}

// Auto is the target's choice, or the first of the families' choices that can be made. Modifiers
// are kept.
func TestResolve(t *testing.T) {
	made := func(ok bool) func(string, registry.Modifiers, registry.Target) (draft.Drafter, error) {
		return func(string, registry.Modifiers, registry.Target) (draft.Drafter, error) {
			if !ok {
				return nil, errors.New("no head")
			}
			return nil, nil
		}
	}
	registry.Register(registry.Family{Name: "zz-first", Test: true, Auto: "zz-first", Rank: -2, New: made(false)})
	registry.Register(registry.Family{Name: "zz-second", Test: true, Auto: "zz-second:k=3+text", Rank: -1,
		Modifiers: []string{"text", "freq"}, New: made(true)})
	for text, want := range map[string]string{"auto": "zz-second:k=3+text",
		"auto+freq:size=9": "zz-second:k=3+text+freq:size=9", "zz-first": "zz-first"} {
		if got, err := registry.Resolve(text, registry.Target{}); got != want || err != nil {
			t.Errorf("%s is %q, %v: want %q", text, got, err, want)
		}
	}
	if got, err := registry.Resolve("auto", registry.Target{Auto: "lookup"}); got != "lookup" || err != nil {
		t.Errorf("the target's choice is %q, %v", got, err)
	}
	if _, err := registry.New("auto:k=3", registry.Target{}); err == nil || !strings.Contains(err.Error(), "no options") {
		t.Errorf("auto with options: %v", err)
	}
}

// A family of the calling program is made like grove's own, and knows the target.
func TestFamilyOfAProgram(t *testing.T) {
	var got draft.Target
	draft.Register(draft.Family{Name: "zz-own", Help: "a program's",
		New: func(options string, t draft.Target) (draft.Drafter, error) {
			got = t
			return nil, errors.New("got " + options)
		}})
	if _, err := registry.New("zz-own:n=3", registry.Target{Vocab: 7, Context: 9}); err == nil ||
		!strings.Contains(err.Error(), "got n=3") {
		t.Errorf("%v, want the error of a program's family", err)
	}
	if got.Vocab != 7 || got.Context != 9 {
		t.Errorf("the target is %+v, want a vocabulary of 7 and a context of 9", got)
	}
	if _, err := got.New("zz-own:n=4"); err == nil || !strings.Contains(err.Error(), "got n=4") {
		t.Errorf("another drafter for the target: %v, want the error of its family", err)
	}
	if _, err := registry.New("zz-own+text", registry.Target{}); err == nil ||
		!strings.Contains(err.Error(), "takes no modifiers") {
		t.Errorf("with a modifier: %v", err)
	}
	for _, list := range [][]string{namesOf(registry.Families()), publicNames()} {
		if !slices.Contains(list, "zz-own") || !slices.Contains(list, "zz-test") || slices.Contains(list, "zz-hidden") {
			t.Errorf("the families are %v", list)
		}
	}
}

// A family that cannot be used is refused with an error that names the remedy.
func TestWrongFamilies(t *testing.T) {
	draft.Register(draft.Family{Name: "zz-nothing", Help: "a program's",
		New: func(string, draft.Target) (draft.Drafter, error) { return nil, nil }})
	if _, err := registry.New("zz-nothing", registry.Target{}); err == nil ||
		!strings.Contains(err.Error(), "neither a drafter nor an error") {
		t.Errorf("a family without a drafter: %v", err)
	}
	for name, want := range map[string]string{"": "want letters", "a+b": "want letters", "a:b": "want letters",
		"auto": "neither auto", "plain": "neither auto", "zz-nothing": "another name"} {
		func() {
			defer func() {
				if p := recover(); !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("a family named %q: %v, want a panic that says %q", name, p, want)
				}
			}()
			draft.Register(draft.Family{Name: name})
		}()
	}
	if err := draft.Parse("n=3", &struct{}{}); err == nil || !strings.Contains(err.Error(), "it has no options") {
		t.Errorf("options of a family without any: %v", err)
	}
}

func namesOf(list []registry.Family) (names []string) {
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func publicNames() (names []string) {
	for _, f := range draft.Families() {
		names = append(names, f.Name)
	}
	return names
}
