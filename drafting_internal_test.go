package grove

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

// A drafter serves every later generation that names it, and the number of kept drafters is bounded.
func TestDraftersAreKept(t *testing.T) {
	shape, err := synth.Lookup("tiny-llama2")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d := &m.drafting
	use := func(text string) (any, string) {
		t.Helper()
		o, name, err := d.use(m, text)
		if err != nil {
			t.Fatal(err)
		}
		return o, name
	}
	a, name := use("lookup")
	if b, _ := use("lookup"); a != b || name != "lookup" {
		t.Errorf("a drafter is not kept, or is called %q", name)
	}
	if b, _ := use("lookup:min=2"); a == b {
		t.Error("two drafters are the same")
	}
	for _, none := range []string{"", "plain"} {
		if o, name, err := d.use(m, none); o != nil || name != "" || err != nil {
			t.Errorf("%q: %v, %q, %v", none, o, name, err)
		}
	}
	for i := range 3 * maxDrafters {
		_, name = use(fmt.Sprintf("lookup:min=%d", 3+i))
	}
	if len(d.drafters) > maxDrafters || name != "other" {
		t.Errorf("%d drafters are kept, and the last is called %q", len(d.drafters), name)
	}
}

// rowsOf is a drafter that has memory for each token of its texts. It counts those of its kind that are not gone.
type rowsOf struct {
	draft.Base
	rows rowsMemory // a part of it, as in heads
}

type rowsMemory struct{ used int64 }

func (*rowsMemory) RowBytes() int  { return 1 }
func (m *rowsMemory) InUse() int64 { return m.used }

type rowsState struct {
	of   *rowsOf
	rows int64
}

var (
	rowsDrafters        atomic.Int64
	rowsPredicted       atomic.Pointer[[]int32] // what the last text was expected to repeat
	slowBegan, slowEnds = make(chan struct{}), make(chan struct{})
)

func init() {
	open := func(string, draft.Target) (draft.Drafter, error) {
		d := new(rowsOf)
		rowsDrafters.Add(1)
		runtime.AddCleanup(d, func(n int64) { rowsDrafters.Add(n) }, -1)
		return d, nil
	}
	draft.Register(draft.Family{Name: "rows-of-texts", Help: "for tests", New: open})
	slow := func(string, draft.Target) (draft.Drafter, error) {
		slowBegan <- struct{}{}
		<-slowEnds
		return new(rowsOf), nil
	}
	draft.Register(draft.Family{Name: "slow-to-make", Help: "for tests", New: slow})
}

func (d *rowsOf) Pages() []draft.Pages { return []draft.Pages{&d.rows} }

func (d *rowsOf) Begin(o draft.Options) (draft.State, error) {
	if len(o.Predicted) > 0 { // a prefix that is kept has none
		rowsPredicted.Store(&o.Predicted)
	}
	return &rowsState{of: d}, nil
}

func (d *rowsOf) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*rowsState).add(int64(len(r.Tokens)))
	}
	return nil
}

func (d *rowsOf) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return make([]draft.Proposal, len(requests)), nil
}

func (d *rowsOf) Resume(s draft.State, n int, from draft.State, common int) int {
	s.(*rowsState).add(int64(n))
	return n
}

func (s *rowsState) add(n int64) { s.rows, s.of.rows.used = s.rows+n, s.of.rows.used+n }
func (s *rowsState) Close()      { s.add(-s.rows) }

// Of a long prediction, drafters get the beginning that fits the context: all requests wait while they read it.
func TestPredictionIsCut(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text := strings.Repeat("one two three ", 100)
	tokens := m.Tokenizer().Encode(text, tokenizer.EncodeOptions{})
	for _, r := range []Request{{Predict: text}, {PredictTokens: tokens}, {PredictTokens: tokens[:9]}} {
		r.MaxTokens = 2
		r.Drafter = "rows-of-texts"
		if _, err := Collect(m.Generate(t.Context(), "one", r)); err != nil {
			t.Fatal(err)
		}
		want := tokens[:64]
		if r.Predict == "" {
			want = tokens[:min(64, len(r.PredictTokens))]
		}
		if got := *rowsPredicted.Load(); !slices.Equal(got, want) {
			t.Errorf("a drafter gets %d tokens, want %d", len(got), len(want))
		}
	}
}

// Drafters that are made for one generation go with it, however many clients name.
func TestDraftersGo(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i := range 3 * maxDrafters {
		r := Request{MaxTokens: 2, Drafter: fmt.Sprintf("rows-of-texts:%d", i)}
		if _, err := Collect(m.GenerateTokens(context.Background(), []int32{1, 2, int32(i + 3)}, r)); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // cleanups run some time later
		runtime.GC()
		if rowsDrafters.Load() <= maxDrafters+2 { // the last one's pages are still counted
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d drafters are in memory, and %d are kept", rowsDrafters.Load(), maxDrafters)
}

// While a drafter is being made, requests with other drafters continue.
func TestDraftersDoNotWait(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	generate := func(drafter string) error {
		_, err := Collect(m.GenerateTokens(t.Context(), []int32{1}, Request{MaxTokens: 2, Drafter: drafter}))
		return err
	}
	if err := generate("lookup"); err != nil {
		t.Fatal(err)
	}
	slow, other := make(chan error, 1), make(chan error, 1)
	go func() { slow <- generate("slow-to-make") }()
	<-slowBegan
	go func() { other <- generate("lookup") }()
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a request waits for the drafter of another")
	}
	slowEnds <- struct{}{}
	if err := <-slow; err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
