package specblock

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
)

// ranksComeAfter: a head that was trained without the last stage gets its rank head when that is
// requested, without another step of the rest. It is then the head that was trained with the stage:
// only the rank head has changed.
func ranksComeAfter(t *testing.T, j train.Job, r Recipe) {
	without := r
	without.Ranks.Texts = 0
	if err := j.TrainHead(context.Background(), "later", &without); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(j.Dir, name, "hf", "model.safetensors") }
	before, err := safetensors.Open(file("later"))
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	after, err := safetensors.Open(file("specblock"))
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	for _, info := range before.Tensors {
		was, ok := before.Tensor(info.Name)
		now, still := after.Tensor(info.Name)
		was, err1 := was.ReadAll()
		now, err2 := now.ReadAll()
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if !ok || !still {
			t.Fatalf("%s: there %v before the last stage, %v after it", info.Name, ok, still)
		}
		if same := bytes.Equal(was.Data, now.Data); same == strings.HasPrefix(info.Name, "rank_head") {
			t.Errorf("%s: the same after the last stage: %v", info.Name, same)
		}
	}
	j.Report = func(p train.Progress) {
		if p.Steps == r.Steps {
			t.Errorf("step %d of a head that was finished", p.Step)
		}
	}
	if err := j.TrainHead(context.Background(), "later", &r); err != nil {
		t.Fatal(err)
	}
	var whole [2][]byte
	for i, name := range []string{"specblock", "later"} {
		if whole[i], err = os.ReadFile(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(whole[0], whole[1]) {
		t.Error("a rank head that was fitted later is another")
	}
}

// A rank head learned on rows scaled to size one is, once installed, the same function of unscaled rows.
func TestInstall(t *testing.T) {
	h, r, target := tinySpecBlockHead(t)
	h.Tape.Detach()
	l := &learner{Heads: train.Heads{Job: &train.Job{Target: target}}, r: &r, head: h}
	cases.Check(t, 40, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(2, 40).Draw(t, "rows")
		rows := &rankRows{bucket: make([]int8, n)}
		for range n * h.net.Hidden {
			rows.states = append(rows.states, float32(20*rng.NormFloat64()))
		}
		for i := range n * specblock.Features {
			rows.features = append(rows.features, float32(float64(1+i%specblock.Features)*rng.NormFloat64()))
		}
		k, err := newRankLearner(l, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		k.Pack()
		want := k.scores(rows)
		k.install()
		states := nn.Mat{Rows: n, Cols: h.net.Hidden, Stride: h.net.Hidden, Data: rows.states}
		features := nn.Mat{Rows: n, Cols: specblock.Features, Stride: specblock.Features, Data: rows.features}
		out := nn.NewMat(n, specblock.RankBuckets)
		h.net.Rank(h.Exec, states, features, out, &h.bufs)
		for i := range want {
			for b, v := range want[i] {
				if d := math.Abs(float64(v - out.Row(i)[b])); d > 1e-4*(1+math.Abs(float64(v))) {
					t.Fatalf("row %d has the score %g of bucket %d, installed %g", i, v, b, out.Row(i)[b])
				}
			}
		}
	})
}

// Every epoch returns every row once, in its own order.
func TestDeal(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "rows")
		k := &rankLearner{base: &learner{r: &Recipe{Basis: train.Basis{Seed: 3}}}, rows: &rankRows{bucket: make([]int8, n)}}
		var epochs [3][]int
		for i := range 3 * n {
			epochs[i/n] = append(epochs[i/n], k.deal(i))
		}
		at := rapid.IntRange(0, 3*n-1).Draw(t, "gone on from")
		k.order = nil
		if got := k.deal(at); got != epochs[at/n][at%n] {
			t.Fatalf("row %d is number %d, and %d for a run that goes on", at, epochs[at/n][at%n], got)
		}
		if n > 20 && slices.Equal(epochs[0], epochs[1]) {
			t.Fatal("two epochs have one order")
		}
		for _, e := range epochs {
			slices.Sort(e)
			for i, row := range e {
				if row != i {
					t.Fatalf("an epoch deals %v", e)
				}
			}
		}
	})
}

// Offsets never make the mean F1 worse, and undo the shifts of a confident judge's scores.
func TestBestOffsets(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		noise := rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(t, "noise")
		var shift [specblock.RankBuckets]float64
		for b := range shift {
			shift[b] = 2 * rng.NormFloat64()
		}
		var scores [][specblock.RankBuckets]float32
		var bucket []int8
		for i := range rapid.IntRange(8, 200).Draw(t, "rows") {
			right := i % specblock.RankBuckets
			if i > 8 {
				right = min(rng.IntN(12), 3) // some buckets are rare
			}
			var s [specblock.RankBuckets]float32
			for b := range s {
				s[b] = float32(shift[b] + noise*rng.NormFloat64())
			}
			s[right] += 4
			scores, bucket = append(scores, s), append(bucket, int8(right))
		}
		f1 := func(o [specblock.RankBuckets]float32) float64 {
			var c confusion
			for i := range scores {
				c[bucket[i]][specblock.Chosen(scores[i][:], &o)]++
			}
			return c.MeanF1()
		}
		best := bestOffsets(scores, bucket)
		if f1(best) < f1([specblock.RankBuckets]float32{}) {
			t.Fatalf("mean F1 is %g with %v, %g with none", f1(best), best, f1([specblock.RankBuckets]float32{}))
		}
		if noise == 0 && math.Abs(f1(best)-1) > 1e-9 && slices.Max(shift[:])-slices.Min(shift[:]) < 4 {
			t.Fatalf("mean F1 is %g with %v of scores shifted by %v, want 1", f1(best), best, shift)
		}
	})
}
