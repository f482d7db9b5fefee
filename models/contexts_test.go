package models_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tree"
)

// withContext is a GGUF file whose model or head was made for texts of so many tokens.
func withContext(t *testing.T, data []byte, n uint32) []byte {
	const key = ".context_length"
	at := bytes.Index(data, []byte(key))
	if at < 0 { // a router
		return data
	}
	data = bytes.Clone(data)
	at += len(key)
	if kind := binary.LittleEndian.Uint32(data[at:]); kind != 4 {
		t.Fatalf("the context length is of type %d, want 4, uint32", kind)
	}
	binary.LittleEndian.PutUint32(data[at+4:], n)
	return data
}

// openAll opens the target with its draft model and heads, which are made for texts of so many
// tokens.
func openAll(t *testing.T, n uint32) *grove.Model {
	var heads [][]byte
	for _, h := range models.Heads() {
		heads = append(heads, withContext(t, h, n))
	}
	o := grove.Options{HeadGGUF: heads, DraftGGUF: withContext(t, models.Draft(), n), Threads: 1}
	m, err := grove.OpenGGUF("target", models.Target(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// reader is a drafter that reads a text with its target, and is asked what follows at many places.
type reader struct {
	t     *testing.T
	d     draft.Drafter
	state draft.State
	pass  *model.Pass
	cache *nn.Cache
	text  []int32
}

// read has the target compute the rows up to a place. It tells the drafter of them, as of rows that
// were computed now or that came with a cache.
func (x *reader) read(to int, cached bool) {
	tokens := x.text[x.cache.Len():to]
	if len(tokens) == 0 {
		return
	}
	r := draft.Rows{State: x.state, Tokens: tokens, Next: -1, Pass: x.pass, Tree: tree.Chain(tokens)}
	for i := range tokens {
		r.Nodes = append(r.Nodes, int32(i))
	}
	rows := []model.Rows{{Cache: x.cache, Tree: r.Tree}}
	if err := x.pass.Run(context.Background(), rows, x.d.Taps()); err != nil {
		x.t.Fatal(err)
	}
	x.cache.CommitAll()
	if cached {
		r.Pass = nil
		r.Tree = nil
		r.Nodes = nil
	}
	if err := x.d.Commit([]draft.Rows{r}); err != nil {
		x.t.Fatal(err)
	}
}

// every is the distance between the places of a text at which drafters are asked.
const every = 8

// accepted is how many tokens rounds commit whose roots are at places of the text.
func (x *reader) accepted(from, to int) (counts []int) {
	for at := from; at < to; at += every {
		x.read(at, false)
		q := draft.Request{State: x.state, Tree: tree.New(x.text[at]), Budget: 16, Depth: 6}
		if _, err := x.d.Propose(context.Background(), []draft.Request{q}); err != nil {
			x.t.Fatal(err)
		}
		n := 0
		for node := 0; node >= 0; n++ {
			node = q.Tree.Child(node, x.text[at+n+1])
		}
		counts = append(counts, n)
	}
	return counts
}

// tau is the mean number of tokens that a round commits.
func tau(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / float64(len(counts))
}

// check compares acceptance with that of a drafter that has the whole text.
func check(t *testing.T, what, drafter string, got, whole float64) {
	t.Logf("%s, %s: τ is %.2f of %.2f", what, drafter, got, whole)
	if got < 0.95*whole {
		t.Errorf("%s, %s: τ is %.2f, want 0.95 of %.2f at least", what, drafter, got, whole)
	}
}

// Acceptance up to four times a drafter's context is that with a context as long as the text; after a
// prefix hit, that with the whole prefix read; and on the second turn of a chat, that of one long
// prompt. No clock takes part: the figures are the same on every machine.
func TestAcceptanceLasts(t *testing.T) {
	const window, after = 192, 90
	const (
		prompt   = "package list\n\n// Len returns the number of elements in the list.\nfunc (l *List) Len() int {\n\treturn l.len\n}\n\n"
		question = "Tom has 3 boxes with 12 apples each and gives 7 apples to Ann. How many apples does Tom have left?"
		another  = "Ann sells them for $2 each. How much does she earn?"
	)
	ctx := context.Background()
	m, short := openAll(t, 2048), openAll(t, window)
	request := func(drafter string, n int) grove.Request {
		return grove.Request{
			Drafter: drafter, Uncontrolled: true, Budget: 24, MaxTokens: n, IgnoreEnd: true,
			Sampling: grove.Sampling{Temperature: 1, Seed: 1},
		}
	}
	generate := func(chunks iter.Seq2[grove.Chunk, error]) *grove.Result {
		r, err := grove.Collect(chunks)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text, err := m.Tokenize(prompt)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, generate(m.GenerateTokens(ctx, text, request("eagle3", 4*window))).Tokens...)
	end := len(text) - 20

	for _, drafter := range []string{"eagle3", "jetspec", "specblock", "best-first"} {
		begin := func(m *grove.Model) *reader {
			target := inside.Target(m)
			d, err := registry.New(drafter, target)
			if err != nil {
				t.Fatal(err)
			}
			s, err := d.Begin(draft.Options{Sampling: request(drafter, 1).Sampling})
			if err != nil {
				t.Fatal(err)
			}
			x := &reader{t, d, s, target.Model.NewPass(), target.Model.NewCache(), text}
			t.Cleanup(func() { s.Close(); x.cache.Free() })
			return x
		}
		whole := begin(m).accepted(window, end)
		check(t, "beyond the context", drafter, tau(begin(short).accepted(window, end)), tau(whole))

		var got, want []int
		for n := window + 18*every; n+after < end; n += 2 * after {
			hit := begin(m)
			hit.read(hit.d.Resume(hit.state, n, nil, 0), true)
			got = append(got, hit.accepted(n, n+after)...)
			want = append(want, whole[(n-window)/every:][:after/every]...)
		}
		check(t, "after a prefix hit", drafter, tau(got), tau(want))

		s := m.NewSession()
		defer s.Close()
		talk := []grove.Message{{Role: "user", Content: question}}
		answer := generate(s.Chat(ctx, talk, request(drafter, 80)))
		talk = append(talk, grove.Message{Role: "assistant", Content: answer.Text},
			grove.Message{Role: "user", Content: another})
		once, turn := generate(m.Chat(ctx, talk, request(drafter, 80))), generate(s.Chat(ctx, talk, request(drafter, 80)))
		check(t, "on a second turn", drafter, turn.Stats.Tau(), once.Stats.Tau())
	}
}
