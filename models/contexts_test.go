package models_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
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
	o := grove.Options{HeadGGUF: heads, DraftGGUF: withContext(t, models.Draft(), n)}
	m, err := grove.OpenGGUF("target", models.Target(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// tau is the acceptance of two ways of decoding the same texts: tokens, of so many rounds.
type tau struct{ tokens, rounds [2]int }

// add counts the rounds of a generation after its first tokens.
func (a *tau) add(t *testing.T, way int, chunks iter.Seq2[grove.Chunk, error], after int) (r *grove.Result) {
	n := 0
	for c, err := range chunks {
		if err != nil {
			t.Fatal(err)
		}
		if n > after {
			a.tokens[way] += len(c.Tokens)
			a.rounds[way]++
		}
		n += len(c.Tokens)
		r = c.Result
	}
	return r
}

// check compares the second way with the first.
func (a *tau) check(t *testing.T, what, drafter string, least float64) {
	t.Helper()
	want, got := float64(a.tokens[0])/float64(a.rounds[0]), float64(a.tokens[1])/float64(a.rounds[1])
	t.Logf("%s, %s: τ is %.2f, and %.2f without; %d rounds", what, drafter, got, want, a.rounds[1])
	if got < least*want {
		t.Errorf("%s, %s: τ is %.2f, want %g of %.2f at least", what, drafter, got, least, want)
	}
}

// Acceptance up to four times a drafter's context is that with a context as long as the text; after
// a prefix hit, and on the second turn of a chat, that of one long prompt. No clock takes part: the
// figures are the same on every machine.
func TestAcceptanceLasts(t *testing.T) {
	const window, prefix = 192, 300
	const (
		prompt   = "package list\n\n// Len returns the number of elements in the list.\nfunc (l *List) Len() int {\n\treturn l.len\n}\n\n"
		question = "Tom has 3 boxes with 12 apples each and gives 7 apples to Ann. How many apples does Tom have left?"
		another  = "Ann sells them for $2 each. How much does she earn?"
	)
	ctx := context.Background()
	m, short := openAll(t, 2048), openAll(t, window)
	// A hundred rounds or two leave τ a standard error of about 5 %: the bound of 0.95 is for all drafters together, and a
	// wider one for each.
	const together, each = 0.95, 0.9
	var all [3]tau
	for _, drafter := range []string{"eagle3", "jetspec", "specblock", "best-first"} {
		request := func(drafter string, seed uint64, n int) grove.Request {
			return grove.Request{
				Drafter: drafter, Uncontrolled: true, Budget: 24, MaxTokens: n, IgnoreEnd: true,
				Sampling: grove.Sampling{Temperature: 1, Seed: seed},
			}
		}
		var beyond, hit, turn tau
		long := beyond.add(t, 0, m.Generate(ctx, prompt, request(drafter, 1, 4*window)), window)
		beyond.add(t, 1, short.Generate(ctx, prompt, request(drafter, 1, 4*window)), window)
		beyond.check(t, "beyond the context", drafter, each)

		for at := prefix; at < len(long.Tokens); at += 120 {
			hit.add(t, 0, m.GenerateTokens(ctx, long.Tokens[:at], request(drafter, 2, 80)), 0)
			s := m.NewSession()
			if _, err := grove.Collect(s.GenerateTokens(ctx, long.Tokens[:at], request("plain", 2, 1))); err != nil {
				t.Fatal(err)
			}
			hit.add(t, 1, s.GenerateTokens(ctx, long.Tokens[:at], request(drafter, 2, 80)), 0)
			s.Close()
		}
		hit.check(t, "after a prefix hit", drafter, each)

		for seed := uint64(1); seed < 5; seed++ {
			s := m.NewSession()
			talk := []grove.Message{{Role: "user", Content: question}}
			r, err := grove.Collect(s.Chat(ctx, talk, request(drafter, seed, 100)))
			if err != nil {
				t.Fatal(err)
			}
			talk = append(talk, grove.Message{Role: "assistant", Content: r.Text}, grove.Message{Role: "user", Content: another})
			turn.add(t, 0, m.Chat(ctx, talk, request(drafter, seed, 80)), 0)
			turn.add(t, 1, s.Chat(ctx, talk, request(drafter, seed, 80)), 0)
			s.Close()
		}
		turn.check(t, "on a second turn", drafter, each)
		for i, a := range []tau{beyond, hit, turn} {
			for way := range a.tokens {
				all[i].tokens[way] += a.tokens[way]
				all[i].rounds[way] += a.rounds[way]
			}
		}
	}
	for i, what := range []string{"beyond the context", "after a prefix hit", "on a second turn"} {
		all[i].check(t, what, "all", together)
	}
}
