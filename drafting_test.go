package grove_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// spy is a drafter that proposes nothing and records what it is told about its target.
type spy struct {
	draft.Base
	registry.Target
}

var spied struct {
	sync.Mutex
	last registry.Target
	open []*model.Model
}

func init() {
	registry.Register(registry.Family{Name: "spy", Help: "for tests", New: func(options string, _ registry.Modifiers,
		t registry.Target) (draft.Drafter, error) {
		spied.Lock()
		defer spied.Unlock()
		spied.last = t
		if options != "" {
			m, err := t.Open(options)
			if err != nil {
				return nil, err
			}
			spied.open = append(spied.open, m)
		}
		return &spy{Target: t}, nil
	}})
}

func (spy) Begin(draft.Options) (draft.State, error) { return spyState{}, nil }
func (spy) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return make([]draft.Proposal, len(requests)), nil
}
func (spy) Commit([]draft.Rows) error { return nil }

type spyState struct{}

func (spyState) Close() {}

// tinyFile writes a seeded random model.
func tinyFile(t testing.TB, shape string) string {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), shape+".gguf")
	if err := synth.Write(ctx, path, s, synth.Options{Type: tensor.BF16, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	return path
}

// Drafters are offered the target, the draft model, and files by name: each opened once, on the target's workers.
func TestDrafterTarget(t *testing.T) {
	path := tinyFile(t, "tiny-qwen3")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]grove.Options{"path": {Threads: 1, Draft: path},
		"contents": {Threads: 1, DraftGGUF: data}, "none": {Threads: 2}} {
		m, err := grove.OpenGGUF("tiny", data, o)
		if err != nil {
			t.Fatal(err)
		}
		spied.open = nil
		for _, text := range []string{"spy:" + path, "spy:" + filepath.Dir(path) + "/./x/../" + filepath.Base(path), "spy"} {
			collect(t, m, "a b c", grove.Request{MaxTokens: 3, Drafter: text})
		}
		got := spied.last
		if got.Model == nil || got.Context != m.Context() ||
			(got.Draft != nil) != (name != "none") {
			t.Errorf("%s: the drafter was told %+v", name, got)
		}
		if len(spied.open) != 2 || spied.open[0] != spied.open[1] || spied.open[0].Pool() != got.Model.Pool() {
			t.Errorf("%s: files opened: %v", name, spied.open)
		}
		if name == "path" && spied.open[0] != got.Draft {
			t.Error("the draft model was opened twice")
		}
		if got.Draft != nil && got.Draft.Pool() != got.Model.Pool() {
			t.Errorf("%s: the draft model has workers of its own", name)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// padded returns o with padding to that many parameters.
func padded(o grove.Options, parameters int64) grove.Options {
	inside.SetOpenOptions(&o, inside.OpenOptions{Pad: parameters})
	return o
}

// A model opened from memory is the model of the file.
func TestOpenGGUF(t *testing.T) {
	path := tinyFile(t, "tiny-llama3")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := grove.Open(path, grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := grove.OpenGGUF("in memory", data, padded(grove.Options{Threads: 1}, 2_000_000))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := inside.Target(b).Model.Config.Padded; n < 300_000 {
		t.Errorf("padded by %d parameters", n)
	}
	r := grove.Request{MaxTokens: 20, Sampling: grove.Sampling{Temperature: 1, Seed: 3}, IgnoreEnd: true}
	if x, y := collect(t, a, "one", r), collect(t, b, "one", r); !slices.Equal(x.Tokens, y.Tokens) {
		t.Errorf("%v from the file, %v from memory, padded", x.Tokens, y.Tokens)
	}
	if _, err := grove.OpenGGUF("in memory", data[:1000], grove.Options{}); err == nil ||
		!strings.Contains(err.Error(), "in memory") {
		t.Errorf("half a file: %v", err)
	}
	for want, o := range map[string]grove.Options{
		"Draft":           {Draft: path, DraftGGUF: data},
		"Pad":             padded(grove.Options{}, -1),
		"the draft model": {Draft: path + ".none"},
		"DraftGGUF":       {DraftGGUF: data[:100]},
		"padding to 5":    padded(grove.Options{}, 5),
	} {
		if m, err := grove.OpenGGUF("in memory", data, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, m, err)
		}
	}
}

// Pieces make up the text; drafted pieces are the text of drafted tokens.
func TestPieces(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	tok := m.Tokenizer()
	for seed := range uint64(6) {
		r := grove.Request{MaxTokens: 40, Sampling: grove.Sampling{Temperature: 1, Seed: seed}, IgnoreEnd: true}
		if seed%2 == 1 {
			r.Stop = []string{"e z", "\x7f\x7f"} // holds text back
		}
		whole := collect(t, m, "x y", r)
		r.Drafter = "lookup"
		r.Predict = whole.Text
		r.Uncontrolled = true
		var all, drafted, want strings.Builder
		for c, err := range m.Generate(ctx, "x y", r) {
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, p := range c.Pieces {
				if p.Text == "" {
					t.Error("an empty piece")
				}
				text += p.Text
				if p.Drafted {
					drafted.WriteString(p.Text)
				}
			}
			if text != c.Text {
				t.Errorf("pieces %+v of %q", c.Pieces, c.Text)
			}
			all.WriteString(text)
			want.WriteString(tok.Decode(c.Tokens[:c.Drafted], tokenizer.DecodeOptions{}))
		}
		if all.String() != whole.Text {
			t.Errorf("pieces add up to %q, the text is %q", all.String(), whole.Text)
		}
		// If a character is split between tokens, its bytes count where it is completed: compare complete ones.
		if ascii(whole.Text) && r.Stop == nil && drafted.String() != want.String() {
			t.Errorf("drafted text %q, the drafted tokens say %q", drafted.String(), want.String())
		}
	}
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e })
}
