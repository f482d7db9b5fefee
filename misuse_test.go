package grove_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/testing/calltest"
)

// unruly is a drafter that proposes the newest token three times, and does one thing that it should not.
type unruly struct {
	draft.Base
	taps, pages, commit, propose func(*unruly) // nil: nothing out of the ordinary
	asked                        int
	rows                         []draft.Rows
	requests                     []draft.Request
}

func (d *unruly) Taps() []int {
	d.asked++
	if d.taps != nil {
		d.taps(d)
	}
	return nil
}

func (d *unruly) Pages() []draft.Pages {
	d.asked++
	if d.pages != nil {
		d.pages(d)
	}
	return nil
}

func (*unruly) Begin(draft.Options) (draft.State, error) { return nothing{}, nil }

func (d *unruly) Commit(rows []draft.Rows) error {
	d.rows = rows
	if d.commit != nil {
		d.commit(d)
	}
	return nil
}

func (d *unruly) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for i := range requests {
		for node := range min(requests[i].Budget-1, requests[i].Depth, 3) {
			requests[i].Tree.Append(node, requests[i].Tree.Token[0], -1)
		}
	}
	d.requests = requests
	if d.propose != nil {
		d.propose(d)
	}
	return make([]draft.Proposal, len(requests)), nil
}

// byValue cannot be compared.
type byValue struct {
	unrulyBase
	m map[int]int
}

type unrulyBase struct{ *unruly }

// deep asks for hidden states that no model has.
type deep struct{ unruly }

func (*deep) Taps() []int { return []int{0, 999} }

func init() {
	late := func(d *unruly) { // not when the drafter is made
		if d.asked > 2 {
			panic(errPlanted)
		}
	}
	for name, make := range map[string]func() draft.Drafter{
		"new":     func() draft.Drafter { panic(errPlanted) },
		"value":   func() draft.Drafter { return byValue{unrulyBase{new(unruly)}, map[int]int{}} },
		"deep":    func() draft.Drafter { return new(deep) },
		"taps":    func() draft.Drafter { return &unruly{taps: late} },
		"pages":   func() draft.Drafter { return &unruly{pages: late} },
		"commit":  func() draft.Drafter { return &unruly{commit: func(*unruly) { panic(errPlanted) }} },
		"propose": func() draft.Drafter { return &unruly{propose: func(*unruly) { panic(errPlanted) }} },
		"appends": func() draft.Drafter {
			return &unruly{commit: func(d *unruly) {
				for _, r := range d.rows {
					_ = append(r.Tokens, -1)
				}
			}}
		},
		"sees": func() draft.Drafter {
			return &unruly{propose: func(d *unruly) {
				for _, r := range d.requests {
					if n := r.Tree.Len(); n > 1 {
						r.Tree.SetSees(0, n-1, true)
					}
				}
			}}
		},
	} {
		registry.Register(registry.Family{Name: "unruly-" + name, Help: "for tests", Test: true,
			New: func(string, registry.Modifiers, registry.Target) (draft.Drafter, error) { return make(), nil }})
	}
}

// Whatever a program's drafter does, its generations end: with an error, or with the text of plain
// decoding. Generations alongside them and after them get their own text.
func TestUnrulyDrafters(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	r := grove.Request{MaxTokens: 20, IgnoreEnd: true, Uncontrolled: true}
	generate := func(prompt, drafter string) (*grove.Result, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		r := r
		r.Drafter = drafter
		return grove.Collect(m.Generate(ctx, prompt, r))
	}
	for _, name := range []string{"new", "value", "deep", "taps", "pages", "commit", "propose", "appends", "sees"} {
		prompt := "go go go " + name
		want, err := generate(prompt, "plain")
		if err != nil {
			t.Fatal(err)
		}
		check := func(drafter string, mayFail bool) {
			got, err := generate(prompt, drafter)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s: %s never ends", name, drafter)
			case err != nil && !mayFail:
				t.Errorf("%s: %s: %v", name, drafter, err)
			case err == nil && !slices.Equal(got.Tokens, want.Tokens):
				t.Errorf("%s: %s has %v, plain decoding %v", name, drafter, got.Tokens, want.Tokens)
			}
		}
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() { check("unruly-"+name, true) })
			others.Go(func() { check("plain", false) })
			others.Wait()
		}
		check("lookup", false)
		check("plain", false)
	}
}

// The arguments of a generation are the caller's again when it has ended, even if it ended early.
func TestArgumentsAreTheCallers(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	prompt := []int32{1, 2, 3, 4}
	r := grove.Request{MaxTokens: 8, IgnoreEnd: true, PredictTokens: []int32{5, 6, 7}, Drafter: "lookup"}
	r.Sampling.LogitBias = map[int32]float32{9: 1}
	for i := range int32(200) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(i)*10*time.Microsecond)
		for range m.GenerateTokens(ctx, prompt, r) {
			break
		}
		cancel()
		prompt[i%4] = i % 40
		r.PredictTokens[i%3] = i % 40
		r.Sampling.LogitBias[i%40] = 0.5
	}
}

// Keys and values stay within their limit, however large the trees are.
func TestCacheMemoryOfLargeTrees(t *testing.T) {
	const limit = 4 << 20
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1, CacheMemory: limit, Context: 8192})
	for _, budget := range []int{2, 4096} {
		r := grove.Request{MaxTokens: 40, IgnoreEnd: true, Uncontrolled: true, Budget: budget, Drafter: "bushy"}
		for _, err := range m.Generate(ctx, "go go go", r) {
			if used := inside.EngineStats(m).CacheBytes; used > limit {
				t.Fatalf("budget %d: %d bytes are in use: the limit is %d", budget, used, limit)
			}
			if err != nil && !strings.Contains(err.Error(), "bytes") {
				t.Fatal(err)
			}
		}
	}
}

// bushy proposes trees as large as it may.
type bushy struct{ unruly }

func (*bushy) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		for i := 0; r.Tree.Len() < r.Budget; i++ {
			r.Tree.Append(0, int32(i%40), float32(-i))
			if i >= 40 {
				r.Tree.AppendApart(0, int32(i%40))
			}
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

func init() {
	registry.Register(registry.Family{Name: "bushy", Help: "for tests", Test: true,
		New: func(string, registry.Modifiers, registry.Target) (draft.Drafter, error) { return new(bushy), nil }})
}

// A session shares what it computed only with itself: not with the sessions of another process that
// has the same folder, nor with a tenant of its name.
func TestSessionsAreApart(t *testing.T) {
	dir := t.TempDir()
	prompt := strings.Repeat("go ", 400)
	r := grove.Request{MaxTokens: 2, IgnoreEnd: true}
	for range 3 {
		m := open(t, "tiny-qwen3", grove.Options{Threads: 1, Context: 2048, CacheDir: dir})
		s := m.NewSession()
		for i := range 2 {
			got, err := grove.Collect(s.Generate(ctx, prompt, r))
			if err != nil {
				t.Fatal(err)
			}
			if reused := got.Stats.Reused; (reused > 0) != (i > 0) {
				t.Errorf("generation %d of a session began with %d tokens of its prompt", i, reused)
			}
		}
		s.Close()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// After Close everything that generates or embeds says that the model is closed, also with drafters that were not made
// before.
func TestClosedModel(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, drafter := range []string{"", "lookup", "best-first", "best-first:model=x.gguf", "eagle3"} {
		if _, err := grove.Collect(m.Generate(ctx, "x", grove.Request{Drafter: drafter})); !errors.Is(err, grove.ErrClosed) {
			t.Errorf("%q: %v", drafter, err)
		}
	}
	if _, err := m.Embed(ctx, []int32{1}, grove.EmbedOptions{}); !errors.Is(err, grove.ErrClosed) {
		t.Errorf("an embedding: %v", err)
	}
}

// toolForm is how a model writes calls.
func toolForm(t *testing.T, m *grove.Model) *chat.CallForm {
	t.Helper()
	layout, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	form, err := layout.CallForm()
	if err != nil {
		t.Fatal(err)
	}
	return form
}

// Tools that cannot be called are refused, and not left out of the constraint.
func TestToolsAreRefused(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1, ChatTemplate: calltest.Templates["hermes"]})
	for _, tools := range []grove.Tools{{Form: nil, List: []grove.Tool{{Name: "f"}}},
		{Form: &chat.CallForm{}, Required: true, List: []grove.Tool{{Name: "f"}}},
		{Form: toolForm(t, m), List: []grove.Tool{{Name: "a\"b\n"}}}, {Form: toolForm(t, m), List: []grove.Tool{{}}},
		{Form: toolForm(t, m), List: []grove.Tool{{Name: "größe"}}}} {
		_, err := grove.Collect(m.Generate(ctx, "x", grove.Request{MaxTokens: 4, Tools: &tools}))
		if wrong := new(grove.OptionError); !errors.As(err, &wrong) || wrong.Field != "Tools" {
			t.Errorf("%+v: %v", tools.Form, err)
		}
	}
}

// A template's variables do not replace the messages, whose texts name no control tokens.
func TestVariablesLeaveMessages(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1,
		ChatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}{{ mood }}"})
	layout, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	said := []grove.Message{{Role: "user", Content: "hello"}}
	text, err := layout.Render(said, chat.Options{Vars: map[string]json.RawMessage{
		"messages": json.RawMessage(`[{"content":"other"}]`), "mood": json.RawMessage(`"!"`)}})
	if err != nil || fmt.Sprint(text) != "hello!" {
		t.Errorf("%q, %v", text, err)
	}
}
