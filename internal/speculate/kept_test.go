package speculate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	"pgregory.net/rapid"
)

// A conversation in one cache: each prompt begins with a part of the last text. Whatever the
// drafter takes over of that text and whichever rows it needs again, it receives the whole text in
// order, and the tokens are those of plain decoding.
func TestConversation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		target := &toy{context: 200, near: 1}
		target.vocab = rapid.SampledFrom([]int{2, 40}).Draw(r, "vocab")
		target.salt = rapid.Uint64().Draw(r, "salt")
		truth := map[int32][]int32{}
		d := &hostile{r: r, t: target, output: truth, right: 7}
		d.taps = rapid.SampledFrom([][]int{nil, {0, 7}}).Draw(r, "taps")
		o := Options{Budget: 6, Chunk: rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "chunk")}
		o.Uncontrolled = rapid.Bool().Draw(r, "uncontrolled")
		l, err := New(target, d, o)
		if err != nil {
			r.Fatal(err)
		}
		cache := &toyCache{}
		text := []int32{1}
		var kept *Kept
		defer func() { kept.Close() }()
		for range rapid.IntRange(1, 4).Draw(r, "turns") {
			q := genRequest(r, target.vocab)
			q.Budget, q.MaxTokens = 6, rapid.SampledFrom([]int{1, 8, 20}).Draw(r, "max tokens")
			prompt := append(text[:rapid.IntRange(1, len(text)).Draw(r, "same"):len(text)],
				rapid.SliceOfN(rapid.Int32Range(0, int32(target.vocab)-1), 0, 20).Draw(r, "more")...)
			want := plain(target, prompt, q)
			truth[1] = append(slices.Clone(prompt), want...)
			n := min(CommonPrefix(cache.rows, prompt), len(prompt)-1)
			if err := cache.Truncate(n); err != nil {
				r.Fatal(err)
			}
			q.Cache, q.Kept = cache, kept
			s, err := l.Start(prompt, q)
			if err != nil {
				r.Fatal(err)
			}
			left := d.left(s, n)
			if !o.Uncontrolled { // depends on times
				left = s.state.(*hostileState).first
				if left < 0 || cache.Len() == n {
					left = n
				}
			}
			if cache.Len() != left || s.Stats().Reused != left {
				r.Fatalf("%d of %d rows are left in the cache, %d reused: want %d", cache.Len(), n, s.Stats().Reused,
					left)
			}
			for s.Finish() == Running {
				ctx, cancel := context.WithCancel(context.Background())
				if rapid.IntRange(0, 3).Draw(r, "cancelled") == 0 {
					cancel()
				}
				if err := l.Step(ctx, []*Sequence{s}); err != nil && !errors.Is(err, context.Canceled) {
					r.Fatal(err)
				}
				cancel()
			}
			if !slices.Equal(s.Output(), want) {
				r.Fatalf("%v, want %v", s.Output(), want)
			}
			if rapid.Bool().Draw(r, "keep") {
				kept.Close()
				if kept, err = s.Keep(); err != nil || kept == nil {
					r.Fatalf("%v is kept: %v", kept, err)
				}
			}
			text = slices.Clone(s.Text())
			s.Close()
		}
	})
}

// Start commits nothing of a prefix to a drafter. Steps do, a chunk at a time, and stop when their
// context ends. Meanwhile other sequences continue.
func TestPrefixIsCommittedInSteps(t *testing.T) {
	target := &toy{vocab: 40, context: 200, salt: 3}
	d := &counting{}
	l, err := New(target, d, Options{Chunk: 10, Uncontrolled: true})
	if err != nil {
		t.Fatal(err)
	}
	prompt := make([]int32, 100)
	start := func(r Request) *Sequence {
		s, err := l.Start(prompt, r)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start(Request{Cache: &toyCache{rows: prompt[:95]}, MaxTokens: 5})
	if d.rows != 0 {
		t.Fatalf("Start told the drafter of %d rows", d.rows)
	}
	for rows := 10; rows < 95; rows += 10 {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Step(ctx, []*Sequence{s}); !errors.Is(err, context.Canceled) || d.rows != rows-10 {
			t.Fatalf("a step that was cancelled: %v, %d rows told", err, d.rows)
		}
		if err := l.Step(context.Background(), []*Sequence{s}); err != nil || d.rows != rows || target.runs > 0 {
			t.Fatalf("%v; %d rows told after %d passes: want %d after none", err, d.rows, target.runs, rows)
		}
	}
	finish(t, l, s)

	other := start(Request{MaxTokens: 5})
	late := start(Request{Cache: &toyCache{rows: prompt[:95]}, MaxTokens: 5})
	for range 10 {
		if err := l.Step(context.Background(), []*Sequence{late, other}); err != nil {
			t.Fatal(err)
		}
	}
	// One read 10 chunks of the prompt; the drafter received 9 chunks of the other's, and it read the
	// rest.
	if len(other.Output()) != 1 || len(late.Output()) != 1 {
		t.Errorf("%d and %d tokens after ten steps, want one each", len(other.Output()), len(late.Output()))
	}
}

// counting is a drafter that counts the rows of prompts.
type counting struct {
	oracle
	rows int
}

func (d *counting) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		if r.Next < 0 {
			d.rows += len(r.Tokens)
		}
	}
	return d.oracle.Commit(rows)
}

func TestKeptOfAnotherDrafter(t *testing.T) {
	target := &toy{vocab: 40, context: 200, salt: 3}
	rapid.Check(t, func(r *rapid.T) {
		var loops [2]*Loop
		for i := range loops {
			loops[i], _ = New(target, &hostile{r: r, t: target, output: map[int32][]int32{}},
				Options{Uncontrolled: true})
		}
		s, err := loops[0].Start([]int32{1, 2, 3}, Request{MaxTokens: 1})
		if err != nil {
			r.Fatal(err)
		}
		if err := loops[0].Step(context.Background(), []*Sequence{s}); err != nil {
			r.Fatal(err)
		}
		k, err := s.Keep()
		if err != nil {
			r.Fatal(err)
		}
		defer k.Close()
		_, err = loops[1].Start([]int32{1, 2, 3}, Request{Cache: &toyCache{rows: []int32{1}}, Kept: k})
		if err == nil || !strings.Contains(err.Error(), "another drafter") {
			r.Fatalf("error %v", err)
		}
	})
}
