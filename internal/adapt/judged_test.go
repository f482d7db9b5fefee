package adapt_test

import (
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/sample"
)

// Updates at rates that spoil the weights are made, and none of them serves. A head comes into use
// only with a judgement that it is better, and leaves only for such a one or by a rollback.
func TestNothingServesUnjudged(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	for _, c := range []struct {
		name   string
		tuning adapt.Tuning
	}{{"spoiled", wild()}, {"useful", eager()}} {
		d := newLearner(t, m, 1)
		frozen := serve(t, m, newLearner(t, m, 1))
		a := adapter(t, d, adapt.Options{Tuning: c.tuning, Wait: true})
		s := serve(t, m, a.Wrap(d))
		rng := rand.New(rand.NewPCG(4, 4))
		was, head := a.Stats(), a.Head()
		var tau, without float64
		for n := range 40 {
			prompt := traffic(rng, normal)
			_, x := s.query(prompt, sample.Params{}, 16)
			_, y := frozen.query(prompt, sample.Params{}, 16)
			tau, without = tau+x, without+y
			now := a.Stats()
			if changes := now.Adopted + now.Rollbacks - was.Adopted - was.Rollbacks; (a.Head() != head) != (changes == 1) ||
				changes > 1 {
				t.Fatalf("%s: query %d: another head is in use: %v; judgements for one: %d", c.name, n,
					a.Head() != head, changes)
			}
			was, head = now, a.Head()
		}
		t.Logf("%s: τ %.3f, without learning %.3f: %+v", c.name, tau/40, without/40, was)
		if was.Updates[adapt.Full] < 4 || tau < .99*without {
			t.Errorf("%s: τ %.3f after %d updates, %.3f without", c.name, tau/40, was.Updates[adapt.Full], without/40)
		}
	}
}

// Each time that weights are given up the rate is halved, down to a sixteenth.
func TestRateFollowsJudgements(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	d, tuning := newLearner(t, m, 1), wild()
	tuning.Rate[adapt.Full] = 3
	a := adapter(t, d, adapt.Options{Tuning: tuning, Wait: true})
	s := serve(t, m, a.Wrap(d))
	rng := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		s.query(traffic(rng, normal), sample.Params{}, 16)
		returned := a.Stats().Returned
		if want := tuning.Rate[adapt.Full] / float32(int(1)<<min(returned, 4)); a.FullRate() != want {
			t.Fatalf("rate %g after weights were given up %d times, want %g", a.FullRate(), returned, want)
		}
	}
	if n := a.Stats().Returned; n < 2 {
		t.Errorf("weights were given up %d times", n)
	}
}

// With the usual account learning costs what that allows, and one task more at most; the first update too begins when
// it can be paid, by a guess of its price.
func TestAccountIsKept(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	for _, share := range []float64{.02, .3} {
		d, tuning := newLearner(t, m, 1), eager()
		tuning.Share = share
		a := adapter(t, d, adapt.Options{Tuning: tuning, Wait: true, Workers: m.Pool()})
		s := serve(t, m, a.Wrap(d))
		rng := rand.New(rand.NewPCG(4, 4))
		most, was := 0.0, a.Stats()
		for n := 0; n < 60 || n < 5000 && was.Updates[adapt.Full] == 0; n++ {
			s.query(traffic(rng, normal), sample.Params{}, 16)
			now := a.Stats()
			most = max(most, now.Lost-was.Lost)
			if was.Lost > was.Allowed && now.Lost > was.Lost && was.Lost > now.Allowed {
				t.Fatalf("share %g, query %d: a task began at %g s lost of %g allowed", share, n, was.Lost, now.Allowed)
			}
			if now.Lost > now.Allowed+most {
				t.Fatalf("share %g, query %d: %g s are lost of %g allowed; no task took more than %g", share, n,
					now.Lost, now.Allowed, most)
			}
			if now.Updates[adapt.Full] > was.Updates[adapt.Full] && (was.Price == 0 || now.Allowed-was.Lost < was.Price) {
				t.Errorf("share %g: an update began at %g s lost of %g allowed, at a price of %g", share, was.Lost,
					now.Allowed, was.Price)
			}
			was = now
		}
		if was.Updates[adapt.Full] == 0 || was.Decoding <= 0 || was.Lost <= 0 {
			t.Errorf("share %g: nothing was learned: %+v", share, was)
		}
	}
}
