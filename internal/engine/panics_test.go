package engine_test

import (
	"context"
	"errors"
	"fmt"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
)

var errPlanted = errors.New("planted")

// fault panics, or fails, at the n-th call of one function of a target or a drafter.
type fault struct {
	at       string // the function; others work
	calls    int    // until it happens
	inWorker bool   // of a pool
	fails    bool   // with an error instead of a panic
	pool     *par.Pool
}

type panicking struct{}

func (panicking) Do(_, task int) {
	if task == 3 {
		panic(errPlanted)
	}
}

func (f *fault) call(at string) error {
	if at != f.at {
		return nil
	}
	f.calls--
	if f.calls != 0 {
		return nil
	}
	switch {
	case f.fails:
		return errPlanted
	case f.inWorker:
		f.pool.Run(4, panicking{})
	}
	panic(errPlanted)
}

type faultyTarget struct {
	speculate.Target
	*fault
}

func (t *faultyTarget) NewPass() speculate.Pass { return &faultyPass{t.Target.NewPass(), t.fault} }

func (t *faultyTarget) ForkCache(c speculate.Cache) speculate.Cache {
	_ = t.call("fork")
	return t.Target.ForkCache(c)
}

type faultyPass struct {
	speculate.Pass
	*fault
}

func (p *faultyPass) Run(ctx context.Context, rows []speculate.Rows, taps []int) error {
	if err := p.Pass.Run(ctx, rows, taps); err != nil { // rows are pending then
		return err
	}
	_ = p.call("pass")
	return nil
}

type faultyDrafter struct {
	draft.Drafter
	*fault
}

type faultyState struct {
	draft.State
	*fault
}

func (s *faultyState) Close() {
	s.State.Close()
	_ = s.call("close")
}

func (d *faultyDrafter) Begin(o draft.Options) (draft.State, error) {
	if err := d.call("begin"); err != nil {
		return nil, err
	}
	s, err := d.Drafter.Begin(o)
	return &faultyState{s, d.fault}, err
}

func (d *faultyDrafter) Resume(s draft.State, n int, from draft.State, common int) int {
	_ = d.call("resume")
	var other draft.State
	if f, ok := from.(*faultyState); ok {
		other = f.State
	}
	return d.Drafter.Resume(s.(*faultyState).State, n, other, common)
}

func (d *faultyDrafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	if err := d.call("propose"); err != nil {
		return nil, err
	}
	inner := slices.Clone(requests)
	for i := range inner {
		inner[i].State = inner[i].State.(*faultyState).State
	}
	return d.Drafter.Propose(ctx, inner)
}

func (d *faultyDrafter) Commit(rows []draft.Rows) error {
	if err := d.call("commit"); err != nil {
		return err
	}
	inner := slices.Clone(rows)
	for i := range inner {
		inner[i].State = inner[i].State.(*faultyState).State
	}
	return d.Drafter.Commit(inner)
}

// Whatever panics or fails in a step, in whichever goroutine, the requests of the pass or of the drafter end
// with that error, after the tokens that they have received, which are those of plain decoding. A complete
// text ends normally; all other requests, including later ones, get their tokens; and no memory is lost.
func TestPanicsEndRequests(t *testing.T) {
	m := open(t)
	pool := par.New(2)
	defer pool.Close()
	var want [][]int32
	cases.Check(t, 40, func(rt *rapid.T) {
		f := &fault{
			at: rapid.SampledFrom([]string{"pass", "begin", "resume", "propose", "commit", "commit", "close", "step",
				"stop", "fork"}).Draw(rt, "at"),
			calls: rapid.IntRange(1, 12).Draw(rt, "calls"), inWorker: rapid.Bool().Draw(rt, "in a worker"), pool: pool,
		}
		f.fails = slices.Contains([]string{"begin", "propose", "commit"}, f.at) && rapid.Bool().Draw(rt, "fails")
		pages := m.NewCache().Pages()
		reports, mu := 0, sync.Mutex{}
		report := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reports++
			if !errors.Is(err, errPlanted) {
				rt.Errorf("reported: %v", err)
			}
			var p *par.Panicked
			if errors.As(err, &p) && f.inWorker && !strings.Contains(string(p.Stack), "panicking") {
				rt.Errorf("the stack is not that of the panic:\n%s", p.Stack)
			}
		}
		lookup, err := registry.New("lookup", registry.Target{Vocab: m.Config.Vocab})
		if err != nil {
			rt.Fatal(err)
		}
		d := &faultyDrafter{lookup, f}
		e, err := engine.New(&faultyTarget{speculate.Model(m), f}, engine.Options{
			Parallel: rapid.IntRange(1, 5).Draw(rt, "parallel"), Pages: []*nn.Pages{pages},
			Loop: speculate.Options{Report: report, Uncontrolled: rapid.Bool().Draw(rt, "uncontrolled"),
				Chunk: rapid.IntRange(1, 64).Draw(rt, "chunk")},
		})
		if err != nil {
			rt.Fatal(err)
		}
		failed := 0
		run := func(e *engine.Engine, n int, drafted bool) (texts [][]int32, ends []error) {
			texts, ends = make([][]int32, n), make([]error, n)
			var all sync.WaitGroup
			for i := range n {
				r := request(20+15*(i%3), 1+3*i)
				r.Budget = 8
				if drafted && i%2 == 0 {
					r.Drafter, r.Name = d, "lookup"
				}
				if drafted {
					r.Stop = func(int32) bool { _ = f.call("stop"); return false }
				}
				r.Step = func(u *engine.Update) {
					texts[i] = append(texts[i], u.Tokens...)
					if drafted {
						_ = f.call("step")
					}
				}
				all.Add(1)
				r.Done = func(err error) { ends[i] = err; all.Done() }
				if err := e.Submit(context.Background(), r); err != nil {
					rt.Fatal(err)
				}
			}
			all.Wait()
			return texts, ends
		}
		if want == nil {
			plain := drafttest.Must(engine.New(speculate.Model(m), engine.Options{}))(t)
			want, _ = run(plain, 6, false)
			plain.Close()
		}
		for turn := range 2 {
			got, ends := run(e, 6, true)
			for i := range got {
				what := fmt.Sprintf("turn %d, request %d", turn, i)
				switch {
				case ends[i] == nil && !slices.Equal(got[i], want[i]):
					rt.Errorf("%s: got %v, want %v", what, got[i], want[i])
				case ends[i] != nil:
					failed++
					if !errors.Is(ends[i], errPlanted) || strings.Contains(ends[i].Error(), "goroutine") {
						rt.Errorf("%s: ended with %v", what, ends[i])
					}
					if len(got[i]) > len(want[i]) || !slices.Equal(got[i], want[i][:len(got[i])]) {
						rt.Errorf("%s: got %v, which is no beginning of %v", what, got[i], want[i])
					}
					if len(got[i]) == len(want[i]) && f.at != "step" && f.at != "stop" && f.at != "fork" {
						rt.Errorf("%s: its text is complete, and it failed: %v", what, ends[i])
					}
				}
			}
		}
		copies := f.at == "begin" && f.fails // of a prefix, without which it is read again
		if happened := f.calls <= 0; happened && !copies && failed == 0 && reports == 0 || !happened && failed+reports > 0 {
			rt.Errorf("%s after %d calls more: %d requests failed, %d reports", f.at, f.calls, failed, reports)
		}
		if !f.fails && reports > 1 {
			rt.Errorf("one panic was reported %d times", reports)
		}
		e.Close()
		if n := pages.InUse(); n != 0 {
			rt.Errorf("%d bytes of keys and values are in use after Close", n)
		}
	})
}
