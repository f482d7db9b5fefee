package adapt_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// Law 2: the tokens are those of plain decoding while weights change under way, whatever they
// become.
func TestSameTokensWhileWeightsChange(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	for i, policy := range []adapt.Policy{adapt.Judged, adapt.Bandit, adapt.OSD, adapt.Always} {
		d := newLearner(t, m, uint64(i))
		a := adapter(t, d, adapt.Options{Policy: policy, Tuning: wild(), Workers: m.Pool(), Wait: i%2 == 0})
		plain, learning := serve(t, m, nil), serve(t, m, a.Wrap(d))
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		for n := range 24 {
			p := sample.Params{Temperature: []float32{0, 1}[n%2], Seed: uint64(n)}
			prompt := traffic(rng, attack)
			want, _ := plain.query(prompt, p, 24)
			if got, _ := learning.query(prompt, p, 24); !slices.Equal(got, want) {
				t.Fatalf("policy %s, query %d: %v, plain decoding makes it %v", policy, n, got, want)
			}
		}
		a.Rest()
		if s := a.Stats(); s.Updates[adapt.Head]+s.Updates[adapt.Full] == 0 || s.Error != "" {
			t.Errorf("policy %s: nothing was learned: %+v", policy, s)
		}
	}
}

// See drafttest.Resumes: a drafter that learns shares as the drafter does.
func TestResume(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d, other := newLearner(t, m, 1), newLearner(t, m, 1)
	w, twin := adapter(t, d, adapt.Options{}).Wrap(d), adapter(t, other, adapt.Options{}).Wrap(other)
	rapid.Check(t, func(r *rapid.T) {
		drafttest.Resumes(r, w, twin, draft.Options{Sampling: drafttest.GenParams(r)}, m.Config.Hidden, 4096)
	})
}

// normal is a kind of traffic.
const normal = 1

// meanTau serves queries of a kind.
func meanTau(s *server, seed uint64, n int) (tau float64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range n {
		_, t := s.query(traffic(rng, normal), sample.Params{}, 16)
		tau += t / float64(n)
	}
	return tau
}

// A drafter that agrees with its target in nothing learns to.
func TestAcceptanceRises(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	before := meanTau(serve(t, m, d), 1, 6)
	a := adapter(t, d, adapt.Options{Tuning: eager(), Wait: true})
	s := serve(t, m, a.Wrap(d))
	meanTau(s, 2, 40)
	if after := meanTau(s, 1, 6); after < before+.3 {
		t.Errorf("40 queries brought τ from %.2f to %.2f: %+v", before, after, a.Stats())
	}
	first := newLearner(t, m, 1)
	if again := meanTau(serve(t, m, first), 1, 6); again != before {
		t.Errorf("the head itself changed: τ %.3f, then %.3f", before, again)
	}
}

// What is kept of texts that have ended takes no place from the texts that the drafter learns from.
func TestLearnsWithKept(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	a := adapter(t, d, adapt.Options{Policy: adapt.Always, Tuning: eager(), Wait: true})
	s := serve(t, m, a.Wrap(d))
	for n := range 5 {
		var all []*speculate.Sequence
		for range 1 + n/4 { // the last two at a time
			all = append(all, drafttest.Must(s.loop.Start([]int32{1, 2, 3}, speculate.Request{MaxTokens: 16}))(t))
		}
		for slices.ContainsFunc(all, func(q *speculate.Sequence) bool { return q.Finish() == speculate.Running }) {
			if err := s.loop.Step(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range all {
			kept := drafttest.Must(q.Keep())(t)
			defer kept.Close()
			before := a.Stats().Updates
			q.Close()
			if a.Stats().Updates == before {
				t.Errorf("nothing was learned after %d texts: %+v", n, a.Stats())
			}
		}
	}
}

// blocker is workers of which an update does not get any until it is let.
type blocker struct{ gate, entered chan struct{} }

func (b *blocker) Threads() int { return 2 }
func (b *blocker) Spare(n int) {
	if n > 0 {
		close(b.entered)
		<-b.gate
	}
}

// Decoding never waits for an update.
func TestDecodingDoesNotWait(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	b := &blocker{make(chan struct{}), make(chan struct{})}
	a, err := adapt.New(d.Head(), drafttest.Vocab, adapt.Options{Policy: adapt.Always, Tuning: wild(), Workers: b})
	if err != nil {
		t.Fatal(err)
	}
	head := a.Head()
	s := serve(t, m, a.Wrap(d))
	s.query([]int32{1, 2, 3}, sample.Params{}, 20)
	<-b.entered // an update has begun, and cannot go on
	meanTau(s, 1, 5)
	if a.Head() != head {
		t.Error("another head is in use before the update is done")
	}
	close(b.gate)
	a.Rest()
	if a.Head() == head {
		t.Error("the update did not come into use")
	}
	b.entered = make(chan struct{})
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// An attacker's prompts, then normal traffic: learning from the attack is taken back, and
// acceptance is again what it was.
func TestPoisonedStream(t *testing.T) {
	t.Parallel()
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	taught := adapter(t, d, adapt.Options{Tuning: eager(), Wait: true})
	meanTau(serve(t, m, taught.Wrap(d)), 2, 60) // a drafter for normal traffic
	n := exported(t, taught, m)
	usual := meanTau(serve(t, m, n), 5, 10)

	a := adapter(t, n, adapt.Options{Tuning: eager(), Wait: true})
	s, plain := serve(t, m, a.Wrap(n)), serve(t, m, nil)
	rng := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		prompt := traffic(rng, attack)
		s.query(prompt, sample.Params{Temperature: 1.5, Seed: rng.Uint64()}, 8)
	}
	a.Freeze(true)
	poisoned := meanTau(s, 5, 10)
	a.Freeze(false)
	for i := range 40 {
		prompt := traffic(rng, normal)
		want, _ := plain.query(prompt, sample.Params{}, 16)
		if got, _ := s.query(prompt, sample.Params{}, 16); !slices.Equal(got, want) {
			t.Fatalf("query %d after the attack: %v, want %v", i, got, want)
		}
	}
	a.Freeze(true)
	after := meanTau(s, 5, 10)
	t.Logf("τ %.3f before, %.3f after the attack, %.3f after normal traffic; %+v", usual, poisoned, after, a.Stats())
	if poisoned > .95*usual {
		t.Errorf("the attack did no harm (τ %.3f, before it %.3f): it tests nothing", poisoned, usual)
	}
	if after < .97*usual {
		t.Errorf("τ is %.3f after normal traffic, %.3f before the attack", after, usual)
	}
}

// exported is a drafter with the head that an adapter has learned.
func exported(t *testing.T, a *adapt.Adapter, m *model.Model) learn.Learner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "head.gguf")
	if err := a.Export(path, "test"); err != nil {
		t.Fatal(err)
	}
	h, err := jet.Open(registry.Head{Name: path}, drafttest.As(m))
	if err != nil {
		t.Fatal(err)
	}
	return drafter(t, h, m)
}

// What was learned outlives a restart; a file of another head, or a broken one, is refused.
func TestRestart(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	dir := t.TempDir()
	o := adapt.Options{Tuning: eager(), Wait: true, Dir: dir}
	first := newLearner(t, m, 1)
	open := func() *adapt.Adapter { return drafttest.Must(adapt.New(first.Head(), drafttest.Vocab, o))(t) }
	closed := func(a *adapt.Adapter) {
		t.Helper()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	states := func() (n int) { return len(drafttest.Must(filepath.Glob(filepath.Join(dir, "*.safetensors")))(t)) }
	closed(open())
	if states() > 0 {
		t.Error("a head that never learned has a state")
	}
	a := open()
	meanTau(serve(t, m, a.Wrap(newLearner(t, m, 1))), 2, 20)
	learned, stats := adapt.Fingerprint(a.Head()), a.Stats()
	closed(a)
	if learned == adapt.Fingerprint(first.Head()) {
		t.Fatalf("nothing was learned: %+v", stats)
	}
	a = open()
	if got := adapt.Fingerprint(a.Head()); got != learned {
		t.Error("after a restart the head is not the one that was learned")
	}
	file := func(h learn.Head) string { return filepath.Join(dir, adapt.Fingerprint(h)+".safetensors") }
	content := drafttest.Must(os.ReadFile(file(first.Head())))(t)
	if got := a.Stats(); got.Queries != stats.Queries || got.Value != stats.Value {
		t.Errorf("after a restart %+v, before it %+v", got, stats)
	}
	if err := a.Reset(); err != nil || states() > 0 {
		t.Fatalf("%v: %d states after a reset", err, states())
	}
	closed(a)
	if err := a.Reset(); err == nil {
		t.Error("a closed adapter was reset")
	}
	a = open()
	if a.Head() != first.Head() {
		t.Error("after a reset the head is not the first")
	}
	closed(a)

	other := newLearner(t, m, 2).Head()
	w := safetensors.NewWriter()
	w.SetMetadata("grove.adapt", "{}")
	old := filepath.Join(t.TempDir(), "old.safetensors")
	if err := w.WriteFile(old); err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{
		"another head's": content, "broken": []byte("x"), "cut": content[:len(content)/2],
		"an older version's": drafttest.Must(os.ReadFile(old))(t),
	}
	for name, b := range bad {
		testfile.Write(t, file(other), b)
		_, err := adapt.New(other, drafttest.Vocab, o)
		if err == nil || strings.Count(err.Error(), file(other)) != 1 ||
			!strings.Contains(err.Error(), "delete the file") ||
			strings.Contains(err.Error(), "older version of grove") != strings.Contains(name, "older") {
			t.Errorf("a state that is %s was taken: %v", name, err)
		}
	}
}

// A frozen adapter learns nothing, and an exported head is the one that was learned.
func TestFreezeAndExport(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d := newLearner(t, m, 1)
	a := adapter(t, d, adapt.Options{Tuning: eager(), Wait: true})
	s := serve(t, m, a.Wrap(d))
	meanTau(s, 2, 12)
	a.Freeze(true)
	head := a.Head()
	meanTau(s, 3, 6)
	if a.Head() != head {
		t.Error("frozen, it learned")
	}
	want := weightsOf(a.Head())
	for name, v := range weightsOf(exported(t, a, m).Head()) {
		if !slices.Equal(v, want[name]) {
			t.Errorf("tensor %s of the exported head is not the one in use", name)
		}
	}
}

// weightsOf is the values of a head's tensors.
func weightsOf(h learn.Head) map[string][]float32 {
	all := map[string][]float32{}
	h.Tensors().Weights(func(w headfile.Weight) {
		w.Each(func(_ int, row []float32) { all[w.Name] = append(all[w.Name], row...) })
	})
	return all
}
