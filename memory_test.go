package grove_test

import (
	"context"
	"errors"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/sample"
)

// A model that is closed refuses generations and texts to remember.
func TestMemoryAfterClose(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1, Context: 64, Memory: &grove.MemoryOptions{}})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := grove.Collect(m.Generate(context.Background(), "a", grove.Request{MaxTokens: 2})); !errors.Is(
		err, grove.ErrClosed) {
		t.Errorf("generate: %v", err)
	}
	if err := m.Remember("someone", "a text"); !errors.Is(err, grove.ErrClosed) {
		t.Errorf("remember: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

// What was generated once is drafted when it is asked for again, by the same tenant and after a
// restart; not for another tenant. The text is the same all the while.
func TestMemory(t *testing.T) {
	var dir string
	open := func(memory *grove.MemoryOptions) *grove.Model {
		m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1, Memory: memory,
			HeadGGUF: models.Heads()})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, drafter := range []string{"lookup", "eagle3:tree=best-first+text"} {
		dir = t.TempDir()
		ask := func(m *grove.Model, tenant string) *grove.Result {
			r := grove.Request{MaxTokens: 60, Sampling: sample.Params{Temperature: 1, Seed: 5}, Drafter: drafter, Tenant: tenant,
				Uncontrolled: true}
			inside.RequestOptionsOf(&r).FreshPrompt = true
			result, err := grove.Collect(m.Generate(context.Background(), "Once upon a time there was", r))
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		plain := open(nil)
		want := ask(plain, "")
		if err := plain.Close(); err != nil {
			t.Fatal(err)
		}
		m := open(&grove.MemoryOptions{Dir: dir})
		first := ask(m, "a")
		if err := m.Close(); err != nil { // which waits until it can be found
			t.Fatal(err)
		}
		m = open(&grove.MemoryOptions{Dir: dir})
		if _, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1, Memory: &grove.MemoryOptions{
			Dir: dir}}); err == nil {
			t.Error("two models keep texts in one folder")
		}
		second, other := ask(m, "a"), ask(m, "b")
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*grove.Result{first, second, other} {
			if r.Text != want.Text {
				t.Errorf("%s: with memory %q, without %q", drafter, r.Text, want.Text)
			}
		}
		// +text learns in between
		if least := want.Stats.Rounds * 3 / 4; first.Stats.Rounds < least || other.Stats.Rounds < least {
			t.Errorf("%s: %d rounds the first time, %d for another tenant, %d without memory", drafter, first.Stats.Rounds,
				other.Stats.Rounds, want.Stats.Rounds)
		}
		if second.Stats.Rounds > want.Stats.Rounds/3 {
			t.Errorf("%s: %d rounds the second time, %d the first", drafter, second.Stats.Rounds, first.Stats.Rounds)
		}
	}
}

// A document that a program remembers is drafted from, and a model without memory says so.
func TestRemember(t *testing.T) {
	const document = "The quick brown fox jumps over the lazy dog and the seven dwarfs at noon, said the keeper of the zoo."
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1, Memory: &grove.MemoryOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Remember("a", document); err != nil {
		t.Fatal(err)
	}
	without, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if err := without.Remember("", document); err == nil {
		t.Error("a model that keeps no texts remembers one")
	}
}
