package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// byHand returns an engine whose steps a test makes: its goroutine never starts.
func byHand(t *testing.T, chunk int) *Engine {
	t.Helper()
	m := drafttest.OpenTarget(t, 512)
	e, err := New(speculate.Model(m), Options{Pages: []*nn.Pages{m.NewCache().Pages()},
		Loop: speculate.Options{Chunk: chunk}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// submitted returns a request that waits.
func submitted(r Request) *job {
	ctx := context.Background()
	r.Call = new(Call)
	unwatch := func() bool { return true }
	return &job{Request: r, ctx: ctx, unwatch: unwatch, text: r.Prompt, began: time.Now(), share: new(share)}
}

// run starts a request and makes steps steps.
func (e *Engine) run(t *testing.T, j *job, steps int) {
	t.Helper()
	if err := e.begin(j); err != nil {
		t.Fatal(err)
	}
	for range steps {
		if err := e.loop.Step(context.Background(), []*speculate.Sequence{j.seq}); err != nil {
			t.Fatal(err)
		}
		if len(j.seq.Fresh()) > 0 {
			e.update(j)
		}
	}
}

// The statistics of a request that is stopped before its first token and starts again include the
// time to its first token, and the caller gets the logits of each place of the prompt once.
func TestStoppedInPrompt(t *testing.T) {
	const chunk, waits = 8, 50 * time.Millisecond
	e := byHand(t, chunk)
	var places, want []int
	r := Request{Prompt: make([]int32, 3*chunk)}
	r.MaxTokens, r.PromptLogits = 4, true
	r.Logits = func(place int, _ int32, _ []float32) { places = append(places, place) }
	var first time.Duration
	r.Step = func(u *Update) { first = u.Stats.First }
	j := submitted(r)
	e.run(t, j, 2)
	e.preempt(j, false)
	e.queue = nil
	time.Sleep(waits)
	e.run(t, j, 4)
	if first < waits {
		t.Errorf("the first token came after %v, want %v and more", first, waits)
	}
	for place := 1; place <= len(r.Prompt)+1; place++ {
		want = append(want, place)
	}
	if !slices.Equal(places, want) {
		t.Errorf("logits of places %v, want %v", places, want)
	}
}

// The last tokens of a prompt may be output of an earlier request, from which the grammar
// continues, also after the request was stopped.
func TestWritten(t *testing.T) {
	e := byHand(t, 0)
	g, err := grammar.GBNF(`root ::= "abc"`)
	if err != nil {
		t.Fatal(err)
	}
	pieces := make([][]byte, e.target.Vocab())
	pieces[11] = []byte("a")
	pieces[12] = []byte("b")
	pieces[13] = []byte("c")
	r := Request{Prompt: []int32{5, 11}}
	r.Written = 1
	r.Grammar = &grammar.Constraint{Grammar: g, Vocab: grammar.NewVocab(pieces), Encode: func(string) []int32 { return nil }}
	for _, stopped := range []bool{false, true} {
		var out []int32
		r.Step = func(u *Update) { out = append(out, u.Tokens...) }
		j := submitted(r)
		e.run(t, j, 1)
		if stopped {
			e.preempt(j, false)
			e.queue = nil
			e.run(t, j, 1)
		} else if err := e.loop.Step(context.Background(), []*speculate.Sequence{j.seq}); err != nil {
			t.Fatal(err)
		} else {
			e.update(j)
		}
		if want := []int32{12, 13}; !slices.Equal(out, want) {
			t.Errorf("stopped: %v: the output is %v, want %v", stopped, out, want)
		}
	}
}

// While a prefix is read from files, requests beside others start only in the memory that it will leave.
func TestMemoryOfPrefixThatIsRead(t *testing.T) {
	e := byHand(t, 32)
	rows := func(n int) int64 { return e.textBytes(new(Request), n) }
	e.o.CacheMemory = rows(400)
	e.queue = append(e.queue, submitted(Request{Prompt: make([]int32, 8)}))
	e.admit()
	next := submitted(Request{Prompt: make([]int32, 100), Fresh: true})
	e.queue = append(e.queue, next)
	for _, reading := range []int64{rows(300), 0} {
		e.restoring = reading
		e.admit()
		if started := next.seq != nil; started != (reading == 0) {
			t.Errorf("with %d bytes of a prefix to come, of %d in all, it started: %v", reading, e.o.CacheMemory, started)
		}
	}
}
