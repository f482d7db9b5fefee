package grove_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tensor"
)

var ctx = context.Background()

// write writes a seeded random model of the named shape.
func write(t testing.TB, shape string) (path string) {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), shape+".gguf")
	if err := synth.Write(ctx, path, s, synth.Options{Type: tensor.Q8_0, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a seeded random model of the named shape.
func open(t testing.TB, shape string, o grove.Options) *grove.Model {
	t.Helper()
	return openFile(t, write(t, shape), o)
}

func openFile(t testing.TB, path string, o grove.Options) *grove.Model {
	t.Helper()
	m, err := grove.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func collect(t interface {
	Helper()
	Fatal(...any)
}, m *grove.Model, prompt string, r grove.Request) *grove.Result {
	t.Helper()
	got, err := grove.Collect(m.Generate(ctx, prompt, r))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A stop string ends drafted text where it ends plain text, wherever it falls in an accepted block,
// and the text before it is a prefix of the text without it.
func TestStopInAnAcceptedBlock(t *testing.T) {
	m := open(t, "tiny-llama2", grove.Options{Threads: 1})
	free := grove.Request{MaxTokens: 40, Sampling: grove.Sampling{Temperature: 1, Seed: 5}, IgnoreEnd: true}
	whole := collect(t, m, "a tale", free)
	cases.Check(t, 30, func(rt *rapid.T) {
		from := rapid.IntRange(0, len(whole.Text)-1).Draw(rt, "from")
		stop := whole.Text[from:min(len(whole.Text), from+rapid.IntRange(1, 6).Draw(rt, "length"))]
		r := free
		r.Stop = []string{strings.ToValidUTF8(stop, "?"), "never in it"}
		plain := collect(rt, m, "a tale", r)
		r.Drafter = "lookup"
		r.Predict = whole.Text
		r.Budget = rapid.IntRange(2, 40).Draw(rt, "budget")
		drafted := collect(rt, m, "a tale", r)
		if plain.Text != drafted.Text || !slices.Equal(plain.Tokens, drafted.Tokens) || plain.Finish != drafted.Finish ||
			plain.Stop != drafted.Stop {
			rt.Fatalf("stop %q: plain %q (%d tokens, %s), drafted %q (%d tokens, %s)", r.Stop[0],
				plain.Text, len(plain.Tokens), plain.Finish, drafted.Text, len(drafted.Tokens), drafted.Finish)
		}
		if !strings.HasPrefix(whole.Text, plain.Text) || strings.Contains(plain.Text, r.Stop[0]) {
			rt.Fatalf("stop %q: text %q of %q", r.Stop[0], plain.Text, whole.Text)
		}
	})
}

// The chunks' texts and tokens are the result's, cut into pieces.
func TestChunksAddUp(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 2})
	r := grove.Request{MaxTokens: 50, Drafter: "lookup", Budget: 8, Stop: []string{"zz"},
		Sampling: grove.Sampling{Temperature: 0.7, Seed: 2}}
	var text strings.Builder
	var tokens []int32
	var result *grove.Result
	for c, err := range m.Generate(ctx, "x y x y x y", r) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Drafted < 0 || c.Drafted > len(c.Tokens) || result != nil {
			t.Errorf("chunk %+v", c)
		}
		text.WriteString(c.Text)
		tokens = append(tokens, c.Tokens...)
		result = c.Result
	}
	if result == nil || result.Text != text.String() || !slices.Equal(result.Tokens, tokens) ||
		result.Stats.Tokens != len(tokens) {
		t.Errorf("chunks gave %q, %v; the result is %+v", text.String(), tokens, result)
	}
}

// A session's text equals that of separate generations, whatever came before: other prompts,
// abandoned rounds, cancelled contexts.
func TestSessionIsAsIfAlone(t *testing.T) {
	m := open(t, "tiny-gptneox", grove.Options{Threads: 2})
	cases.Check(t, 30, func(rt *rapid.T) {
		s := m.NewSession()
		defer s.Close()
		prompt := "one"
		for range rapid.IntRange(1, 5).Draw(rt, "turns") {
			prompt = strings.ToValidUTF8(prompt[:rapid.IntRange(1, len(prompt)).Draw(rt, "keep")],
				"") + rapid.StringMatching(`[a-d ]{0,12}`).Draw(rt, "add")
			r := grove.Request{
				MaxTokens: 12,
				Drafter:   rapid.SampledFrom([]string{"plain", "lookup", "lookup:min=2"}).Draw(rt, "drafter"),
				Sampling:  grove.Sampling{Temperature: 1, Seed: 4, FrequencyPenalty: 0.5},
				IgnoreEnd: true,
			}
			switch rapid.IntRange(0, 3).Draw(rt, "how") {
			case 0: // leave after a few chunks
				left := rapid.IntRange(1, 4).Draw(rt, "chunks")
				for _, err := range s.Generate(ctx, prompt, r) {
					left--
					if err != nil || left == 0 {
						break
					}
				}
			case 1: // the context ends on the way
				stop, cancel := context.WithCancel(ctx)
				for _, err := range s.Generate(stop, prompt, r) {
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) {
						rt.Fatal(err)
					}
				}
				cancel()
			default:
				got, err := grove.Collect(s.Generate(ctx, prompt, r))
				if err != nil {
					rt.Fatal(err)
				}
				if want := collect(rt, m, prompt, r); got.Text != want.Text || !slices.Equal(got.Tokens, want.Tokens) {
					rt.Fatalf("after %q: %q in the session, %q alone", prompt, got.Text, want.Text)
				}
				prompt += got.Text
			}
		}
	})
}

// A conversation in a session is answered like one that arrives whole, and what was read before is not read again.
func TestChat(t *testing.T) {
	m := open(t, "tiny-llama3", grove.Options{})
	s := m.NewSession()
	defer s.Close()
	var talk []grove.Message
	for i, text := range []string{"good morning", "and now?", "<|eot_id|> goodbye"} {
		talk = append(talk, grove.Message{Role: "user", Content: text})
		r := grove.Request{MaxTokens: 10, Drafter: "lookup"}
		got, err := grove.Collect(s.Chat(ctx, talk, r))
		if err != nil {
			t.Fatal(err)
		}
		alone := r
		inside.RequestOptionsOf(&alone).FreshPrompt = true
		want, err := grove.Collect(m.Chat(ctx, talk, alone))
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != want.Text || want.Stats.Reused != 0 || (got.Stats.Reused > 0) != (i > 0) {
			t.Errorf("turn %d: %q with %d tokens reused, want %q", i, got.Text, got.Stats.Reused, want.Text)
		}
		talk = append(talk, grove.Message{Role: "assistant", Content: got.Text})
	}
	for _, bad := range [][]grove.Message{nil, {{Content: "no role"}}, {{Role: "user", Content: "\xff"}}} {
		var option *grove.OptionError
		if _, err := grove.Collect(m.Chat(ctx, bad, grove.Request{})); !errors.As(err, &option) ||
			!strings.HasPrefix(option.Field, "Messages") {
			t.Errorf("%+v: %v, want an OptionError of Messages", bad, err)
		}
	}
}

// Goroutines that generate with one model get the same text as each would alone.
func TestConcurrentGenerations(t *testing.T) {
	m := open(t, "tiny-qwen2", grove.Options{Threads: 2})
	request := func(i int) grove.Request {
		return grove.Request{MaxTokens: 20, Drafter: []string{"", "lookup"}[i%2],
			Sampling: grove.Sampling{Temperature: 1, Seed: uint64(i)}}
	}
	var want []string
	for i := range 6 {
		want = append(want, collect(t, m, "go go go", request(i)).Text)
	}
	var wg sync.WaitGroup
	for i, want := range want {
		wg.Go(func() {
			got, err := grove.Collect(m.Generate(ctx, "go go go", request(i)))
			if err != nil || got.Text != want {
				t.Errorf("generation %d: %v, %v; want %q", i, got, err, want)
			}
		})
	}
	wg.Wait()
}

// A context that ends stops the work, with its error.
func TestCancel(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{})
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range m.Generate(stop, "a", grove.Request{IgnoreEnd: true}) {
		n++
		if n == 3 {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) || n != 4 {
		t.Errorf("%d chunks, %v", n, last)
	}
	if _, err := grove.Collect(m.Generate(stop, "a", grove.Request{})); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that had ended: %v", err)
	}
}

// A session takes one generation at a time.
func TestBusySession(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	s := m.NewSession()
	defer s.Close()
	for _, err := range s.Generate(ctx, "a", grove.Request{MaxTokens: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := grove.Collect(s.Generate(ctx, "b", grove.Request{})); err == nil ||
			!strings.Contains(err.Error(), "already generating") {
			t.Errorf("a second generation in the session: %v", err)
		}
		break
	}
	if _, err := grove.Collect(s.Generate(ctx, "b", grove.Request{MaxTokens: 1})); err != nil {
		t.Errorf("after the first was left: %v", err)
	}
}

// A real model writes what it wrote in PyTorch: the same from the folder and from the file (package
// model has the golden logits), drafted and plain.
func TestRealModel(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	var texts []string
	for _, path := range []string{dir, filepath.Join(dir, "go-7m-f32.gguf")} {
		m, err := grove.Open(path, grove.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, drafter := range []string{"plain", "lookup"} {
			texts = append(texts, collect(t, m, "func main() {\n", grove.Request{MaxTokens: 32, Drafter: drafter}).Text)
		}
	}
	for _, text := range texts[1:] {
		if text != texts[0] {
			t.Errorf("texts differ: %q", texts)
		}
	}
}
