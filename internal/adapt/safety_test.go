package adapt_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Decoding goes on while the state is being written, whoever writes it: an update or Close.
func TestDecodingDoesNotWaitForTheDisk(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d, quick := newLearner(t, m, 1), wild()
	quick.Steps, quick.Rounds = [3]int{adapt.Head: 1, adapt.Full: 1}, 4
	o := adapt.Options{Policy: adapt.Always, Tuning: quick, Dir: t.TempDir()}
	a := drafttest.Must(adapt.New(d.Head(), drafttest.Vocab, o))(t)
	entered, decoded := make(chan bool, 1), make(chan bool)
	a.BeforeWrites(func() error { // a disk that is as slow as decoding
		entered <- true
		<-decoded
		return nil
	})
	s := serve(t, m, a.Wrap(d))
	decode := func() {
		t.Helper()
		done := make(chan bool)
		go func() {
			defer close(done)
			for range 3 {
				s.query([]int32{1, 2, 3}, sample.Params{}, 20)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("decoding waits for the disk")
		}
	}
	for writing := false; !writing; {
		decode()
		select {
		case writing = <-entered:
		default:
		}
	}
	decode()
	decoded <- true
	done := make(chan error)
	go func() { done <- a.Close() }()
	<-entered
	decode()
	decoded <- true
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A disk that is full for a while ends no learning. What was learned is saved when there is room again.
func TestFullDisk(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d, quick := newLearner(t, m, 1), wild()
	quick.Steps, quick.Rounds = [3]int{adapt.Head: 1, adapt.Full: 1}, 4
	o := adapt.Options{Policy: adapt.Always, Tuning: quick, Dir: t.TempDir(), Wait: true}
	a := drafttest.Must(adapt.New(d.Head(), drafttest.Vocab, o))(t)
	saves, s := 0, serve(t, m, a.Wrap(d))
	a.BeforeWrites(func() error {
		saves++
		if saves < 2 {
			return errors.New("no space left on the device")
		}
		return nil
	})
	for n := 0; saves < 2; n++ {
		if n == 200 || a.Stats().Error != "" {
			t.Fatalf("query %d: %d saves: %+v", n, saves, a.Stats())
		}
		s.query([]int32{1, 2, 3}, sample.Params{}, 20)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again := adapter(t, newLearner(t, m, 1), o)
	if again.Stats().Queries != a.Stats().Queries {
		t.Errorf("%d queries, want %d", again.Stats().Queries, a.Stats().Queries)
	}
}

// Goroutines decode, reset, export, save and close at once. The text stays the same, and the state
// that is left is that of the head in use.
func TestConcurrentUse(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	first, dir := newLearner(t, m, 1).Head(), t.TempDir()
	o := adapt.Options{Policy: adapt.Always, Tuning: wild(), Dir: filepath.Join(dir, "state"), Workers: m.Pool()}
	a := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t)
	prompt := []int32{1, 2, 3}
	want, _ := serve(t, m, nil).query(prompt, sample.Params{}, 12)
	var traffic, others sync.WaitGroup
	var stop atomic.Bool
	for range 3 {
		s := serve(t, m, a.Wrap(newLearner(t, m, 1)))
		traffic.Go(func() {
			for !stop.Load() {
				if got, _ := s.query(prompt, sample.Params{}, 12); !slices.Equal(got, want) {
					t.Errorf("%v, plain decoding makes it %v", got, want)
					return
				}
			}
		})
	}
	repeat := func(times int, f func() error) {
		for range 2 {
			others.Go(func() {
				for range times {
					if err := f(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	repeat(12, a.Reset)
	repeat(12, func() error { return a.Export(filepath.Join(dir, "head.gguf"), "test") })
	repeat(12, a.Save)
	repeat(200, func() error { a.Rest(); return nil })
	repeat(200, func() error { a.Freeze(a.Stats().Queries%2 == 0); return nil })
	others.Wait()
	a.Freeze(false)
	repeat(1, a.Close)
	others.Wait()
	stop.Store(true)
	traffic.Wait()
	again := adapter(t, newLearner(t, m, 1), o)
	if adapt.Fingerprint(again.Head()) != adapt.Fingerprint(a.Head()) {
		t.Error("the state that is left is not that of the head in use")
	}
}

// finite reports whether all weights of a head are numbers.
func finite(h learn.Head) bool {
	for _, v := range weightsOf(h) {
		if slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }) {
			return false
		}
	}
	return true
}

// Training may make weights anything: those in use are finite, the text stays the same, and those
// in use are saved.
func TestUnsoundWeights(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	plain := serve(t, m, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	refused, used := 0, 0
	for i, rate := range []float32{1e-3, .3, 3e4, 1e10, 1e20, 3e38, float32(math.Inf(1)), float32(math.NaN())} {
		for _, steps := range []int{1, 3} {
			o := adapt.Options{
				Policy: []adapt.Policy{adapt.Judged, adapt.Bandit, adapt.OSD, adapt.Always}[rng.IntN(4)],
				Tuning: wild(), Wait: rng.IntN(2) == 0, Dir: t.TempDir(), Seed: rng.Uint64(),
			}
			for action := range o.Rate {
				o.Rate[action], o.Steps[action] = rate, steps
			}
			d := newLearner(t, m, uint64(i))
			first := d.Head()
			a := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t)
			name := fmt.Sprintf("policy %s, %d steps of %g", o.Policy, steps, rate)
			s := serve(t, m, a.Wrap(d))
			for range 10 {
				prompt := traffic(rng, normal)
				want, _ := plain.query(prompt, sample.Params{}, 20)
				if got, _ := s.query(prompt, sample.Params{}, 20); !slices.Equal(got, want) {
					t.Fatalf("%s: %v, plain decoding makes it %v", name, got, want)
				}
				a.Rest()
				if !finite(a.Head()) {
					t.Fatalf("%s: weights in use are not numbers", name)
				}
			}
			stats := a.Stats()
			refused += stats.Refused
			used += stats.Updates[adapt.Head] + stats.Updates[adapt.Full] - stats.Refused
			if err := a.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			again, err := adapt.New(first, drafttest.Vocab, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if adapt.Fingerprint(again.Head()) != adapt.Fingerprint(a.Head()) {
				t.Errorf("%s: the weights that were saved are not those in use", name)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if refused == 0 || used == 0 {
		t.Errorf("%d updates were refused and %d used: want some of both", refused, used)
	}
}

// brittle is a head of which no other can be made once fail is set, which ends in an error or a panic.
type brittle struct {
	learn.Head
	failing
}

type failing struct {
	fail   *atomic.Bool
	panics bool
}

func (h brittle) Rebuild(w model.Weights) (learn.Head, error) {
	switch {
	case h.fail.Load() && h.panics:
		panic("out of luck")
	case h.fail.Load():
		return nil, errors.New("out of luck")
	}
	twin, err := h.Head.Rebuild(w)
	return brittle{twin, h.failing}, err
}

type brittleLearner struct {
	learn.Learner
	failing
}

func (d brittleLearner) Head() learn.Head { return brittle{d.Learner.Head(), d.failing} }
func (d brittleLearner) Use(h learn.Head) { d.Learner.Use(h.(brittle).Head) }

// After an update that fails or panics the weights from before it are in use, and are saved.
func TestFailedUpdate(t *testing.T) {
	for what, panics := range map[string]bool{"error": false, "panic": true} {
		t.Run(what, func(t *testing.T) { testFailedUpdate(t, panics) })
	}
}

func testFailedUpdate(t *testing.T, panics bool) {
	m := drafttest.OpenTarget(t, 512)
	d := brittleLearner{newLearner(t, m, 1), failing{new(atomic.Bool), panics}}
	o := adapt.Options{Policy: adapt.Always, Tuning: wild(), Wait: true, Dir: t.TempDir()}
	first := d.Head()
	a := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t)
	s := serve(t, m, a.Wrap(d))
	until := func(done func(adapt.Stats) bool) {
		for n := 0; !done(a.Stats()); n++ {
			if n == 100 {
				t.Fatalf("nothing happens: %+v", a.Stats())
			}
			s.query([]int32{1, 2, 3}, sample.Params{}, 20)
		}
	}
	until(func(s adapt.Stats) bool { return s.Updates[adapt.Full]-s.Refused > 0 })
	d.fail.Store(true)
	until(func(s adapt.Stats) bool { return s.Error != "" })
	d.fail.Store(false)
	if err := a.Close(); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("what ended learning is not said: %v", err)
	}
	again := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t)
	if adapt.Fingerprint(again.Head()) != adapt.Fingerprint(a.Head()) || a.Head() == first {
		t.Error("the weights that were saved are not those in use")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// After three intervals in a row in which accepted length falls, the head of the first of them is in
// use again: the best before the decline. Else it is the newest.
func TestRollBack(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d, quick := newLearner(t, m, 1), wild()
	quick.Steps, quick.Rounds = [3]int{adapt.Head: 1, adapt.Full: 1}, 4
	a := adapter(t, d, adapt.Options{Policy: adapt.Always, Tuning: quick, Wait: true})
	s := serve(t, m, a.Wrap(d))
	for a.Stats().Updates[adapt.Full] == 0 {
		s.query([]int32{1, 2, 3}, sample.Params{}, 20)
	}
	texts := slices.Collect(maps.Keys(a.Texts(nil)))
	rolledBack := 0
	cases.Check(t, 30, func(r *rapid.T) {
		if err := a.Reset(); err != nil {
			r.Fatal(err)
		}
		var lengths []int
		var heads []learn.Head
		for _, length := range rapid.SliceOfN(rapid.IntRange(1, 9), 1, 12).Draw(r, "accepted lengths") {
			lengths, heads = append(lengths, length), append(heads, a.Interval(texts, length))
			want, n := len(heads)-1, len(lengths)
			fell := n >= 3 && lengths[n-3] > lengths[n-2] && lengths[n-2] > lengths[n-1]
			if fell {
				want = n - 3
			}
			if a.Head() != heads[want] {
				r.Fatalf("accepted lengths %v: the head in use is number %d, want %d", lengths,
					slices.Index(heads, a.Head()), want)
			}
			if fell {
				rolledBack++
				lengths, heads = nil, nil
			}
		}
	})
	if rolledBack == 0 && !testing.Short() {
		t.Error("no length fell three times in a row")
	}
}

// A state with a number that is not finite, in any of its tensors, is refused.
func TestUnsoundState(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	o := adapt.Options{Policy: adapt.Always, Tuning: wild(), Wait: true, Dir: t.TempDir()}
	d := newLearner(t, m, 1)
	first := d.Head()
	a := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t)
	s := serve(t, m, a.Wrap(d))
	for a.Head() == first {
		s.query([]int32{1, 2, 3}, sample.Params{}, 20)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.Dir, adapt.Fingerprint(first)+".safetensors")
	whole := drafttest.Must(os.ReadFile(path))(t)
	f := drafttest.Must(safetensors.Open(path))(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for _, x := range f.Tensors {
		b := slices.Clone(whole)
		bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[rng.IntN(3)]
		binary.LittleEndian.PutUint32(b[x.Offset+4*rng.Int64N(x.Size/4):], math.Float32bits(bad))
		testfile.Write(t, path, b)
		_, err := adapt.New(first, drafttest.Vocab, o)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete the file") {
			t.Errorf("a state with %g in %s: %v", bad, x.Name, err)
		}
	}
	testfile.Write(t, path, whole)
	if err := drafttest.Must(adapt.New(first, drafttest.Vocab, o))(t).Close(); err != nil {
		t.Errorf("the state as it was: %v", err)
	}
}

// spoil returns JSON values that differ from v in one place each: a number, text, list or field of it
// has become something else, or is gone. Of lists the last item stands for all.
func spoil(v any) (all []any) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			less := maps.Clone(v)
			delete(less, name)
			all = append(all, less)
			for _, y := range spoil(x) {
				other := maps.Clone(v)
				other[name] = y
				all = append(all, other)
			}
		}
	case []any:
		all = append(all, []any{}, slices.Concat(v, v))
		for _, y := range spoil(v[len(v)-1]) {
			all = append(all, append(slices.Clone(v[:len(v)-1]), y))
		}
	case float64:
		for _, x := range []float64{-1, .5, 7, 1 << 62, 1e308} {
			all = append(all, x)
		}
	}
	return append(all, nil, "text", []any{1.})
}

// Whatever a state's metadata says, it is refused by its name, or the adapter learns on from it and
// what it then saves is a state.
func TestDamagedState(t *testing.T) {
	t.Parallel() // it waits for the disk
	m := drafttest.OpenTarget(t, 512)
	quick := wild()
	quick.Steps, quick.Rounds = [3]int{adapt.Head: 1, adapt.Full: 1}, 4
	o := adapt.Options{Policy: adapt.Bandit, Tuning: quick, Wait: true, Dir: t.TempDir()}
	d := newLearner(t, m, 1)
	first := d.Head()
	path := filepath.Join(o.Dir, adapt.Fingerprint(first)+".safetensors")
	served := func(queries int) error {
		a, err := adapt.New(first, drafttest.Vocab, o)
		if err != nil {
			return err
		}
		s := serve(t, m, a.Wrap(d))
		for range queries {
			s.query([]int32{1, 2, 3}, sample.Params{}, 8)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	const key = "grove.adapt.2"
	whole, said := []byte(nil), ""
	for !strings.Contains(said, `"open":true`) { // until an interval is measured
		if err := served(3); err != nil {
			t.Fatal(err)
		}
		whole = drafttest.Must(os.ReadFile(path))(t)
		f := drafttest.Must(safetensors.Open(path))(t)
		said = f.Metadata[key]
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var state any
	if err := json.Unmarshal([]byte(said), &state); err != nil {
		t.Fatal(err)
	}
	refused, taken := 0, 0
	for i, bad := range spoil(state) {
		o.Policy = []adapt.Policy{adapt.Bandit, adapt.Judged}[i%2]
		said := string(drafttest.Must(json.Marshal(bad))(t))
		testfile.Write(t, path, withMetadata(t, whole, key, said))
		if err := served(1); err != nil {
			refused++
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete the file") {
				t.Errorf("%s: %v: want an error that names the file and what to do", said, err)
			}
			continue
		}
		taken++
		a, err := adapt.New(first, drafttest.Vocab, o)
		if err != nil {
			t.Fatalf("%s: what was saved then: %v", said, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d states were refused and %d taken: want some of both", refused, taken)
	}
}

// withMetadata is a safetensors file with another value of a key.
func withMetadata(t *testing.T, file []byte, key, value string) []byte {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	var header map[string]any
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	header["__metadata__"].(map[string]any)[key] = value
	b := drafttest.Must(json.Marshal(header))(t)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b, file[8+n:])
}

// One adapter at a time uses a head's state in a folder. A second one fails: the error says which
// folder, which process, and what to do. Other heads have their own state there.
func TestOneAtATime(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	o := adapt.Options{Dir: filepath.Join(t.TempDir(), "new", "folder")}
	d := newLearner(t, m, 1)
	for range 2 {
		a := drafttest.Must(adapt.New(d.Head(), drafttest.Vocab, o))(t)
		_, err := adapt.New(d.Head(), drafttest.Vocab, o)
		for _, word := range []string{o.Dir, "this process", "name another folder"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("a second adapter: %v: want %q", err, word)
			}
		}
		other := drafttest.Must(adapt.New(newLearner(t, m, 2).Head(), drafttest.Vocab, o))(t)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Fatal(err)
		}
	}
	testfile.Write(t, filepath.Join(o.Dir, "file"), nil)
	o.Dir = filepath.Join(o.Dir, "file")
	if _, err := adapt.New(d.Head(), drafttest.Vocab, o); err == nil || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("a file for a folder: %v", err)
	}
}

// The adapter keeps the last parts of long texts, within its memory, however many sequences run.
func TestMemory(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	const memory = 2 << 20
	a := adapter(t, d, adapt.Options{Policy: adapt.Always, Tuning: wild(), Wait: true, Memory: memory})
	w := a.Wrap(d)
	rng := rand.New(rand.NewPCG(1, 1))
	most, seen := 0, 0
	for wave := range 3 {
		var all []*drafttest.Sequence
		var states []draft.State
		for i := range 8 {
			s := drafttest.Begin(t, w, draft.Options{}, 8*wave+i)
			all, states = append(all, s), append(states, s.State)
		}
		for round := range 300 {
			for _, s := range all {
				tr := tree.New(s.Root)
				for node := range 7 {
					tr.Append(node, rng.Int32N(drafttest.Vocab), -1)
				}
				row := s.Accept(tr, 7, rng.Int32N(drafttest.Vocab), m.Config.Hidden)
				seen += 8 * 4 * len(w.Taps()) * m.Config.Hidden
				drafttest.Commit(t, w, row)
			}
			if round%50 != 49 {
				continue
			}
			bytes := 0
			for l := range a.Texts(states) {
				bytes += l.Bytes()
			}
			most = max(most, bytes)
			if bytes > memory {
				t.Fatalf("%d bytes of texts are kept, in a memory of %d", bytes, memory)
			}
		}
		for _, s := range all {
			s.State.(speculate.Ender).Ended(&speculate.Stats{Rounds: 300})
			s.Close()
		}
	}
	if s := a.Stats(); s.Updates[adapt.Full] == 0 || most < memory/4 || seen < 3*memory {
		t.Errorf("%d updates, %d bytes of %d were kept at most: want more", s.Updates[adapt.Full], most, seen)
	}
}
