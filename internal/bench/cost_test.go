package bench

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
)

func open(t *testing.T, shape string) *model.Model {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "random.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// The roof counts every weight once: in f32 they take four bytes each, and panels slightly more.
func TestWeightsAreAllCounted(t *testing.T) {
	for _, shape := range []string{"tiny-llama2", "tiny-llama3", "tiny-qwen2", "tiny-qwen3", "tiny-gptneox"} {
		m := open(t, shape)
		n := m.Config.Products()
		if b := m.WeightBytes(); b < 4*n || b > 5*n {
			t.Errorf("%s: %d weights, %d bytes packed in f32", shape, n, b)
		}
	}
}

func TestDraftTree(t *testing.T) {
	for _, n := range []int{1, 2, 3, 17, 64, 512} {
		for _, vocab := range []int{400, 151936} {
			tr := draftTree(n, vocab)
			if tr.Len() != n {
				t.Errorf("a tree of %d nodes has %d", n, tr.Len())
			}
			if err := tr.Check(vocab); err != nil {
				t.Error(err)
			}
		}
	}
}

// A sequence has the state with which its next row begins, and the one that KeepState chose, however long it is.
func TestCostStates(t *testing.T) {
	m := open(t, "tiny-qwen35")
	for _, committed := range []int{20, 200} {
		r, err := Cost(context.Background(), m, CostOptions{Shape: "tiny-qwen35", Type: gemm.F32, Rows: []int{64}, Rounds: 1,
			Committed: committed})
		if err != nil {
			t.Fatal(err)
		}
		if most := min(committed/nn.PageRows, 2); r.States > most || committed > nn.PageRows && r.States < 1 ||
			r.Sequence < int64(r.States*r.State+64*r.Cache) {
			t.Errorf("%d tokens: %d states of %d bytes in %d bytes, want 1 to %d states", committed, r.States, r.State, r.Sequence, most)
		}
	}
}

// The report's figures follow from the measurements.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte several times")
	}
	m := open(t, "tiny-llama2")
	rounds := 0
	r, err := Cost(context.Background(), m, CostOptions{
		Shape: "tiny-llama2", Type: gemm.F32, Rows: []int{8, 2, 8}, Rounds: 3, Committed: 40,
		Progress: func(done, total int) { rounds = done },
	})
	if err != nil {
		t.Fatal(err)
	}
	if sizes := []int{r.Rows[0].N, r.Rows[1].N, r.Rows[2].N}; len(r.Rows) != 3 ||
		!slices.Equal(sizes, []int{1, 2, 8}) || rounds != 3 {
		t.Errorf("rows %+v after %d rounds", r.Rows, rounds)
	}
	read := float64(r.Weights+r.Committed*r.Cache) / r.Bandwidth / 1e6 // ms
	if r.CacheRead != r.Committed*r.Cache {
		t.Errorf("a pass reads %d bytes of keys and values, want all %d", r.CacheRead, r.Committed*r.Cache)
	}
	for _, row := range r.Rows {
		if row.Experts != 0 || row.Expected != 0 {
			t.Errorf("the model has no experts, and %d rows read %d", row.N, row.Experts)
		}
		if row.RoofMS < read*0.999 || !near(row.OverRoof*row.RoofMS, row.MS) || !near(row.Ratio*r.Rows[0].MS, row.MS) {
			t.Errorf("%+v does not follow from reading in %g ms and a pass of one row in %g ms", row, read, r.Rows[0].MS)
		}
		multiply := 0.0 // ms
		for _, depth := range draftTree(row.N, m.Config.Vocab).Depth {
			seen := r.Committed + int(depth) + 1
			multiply += 2 * (float64(m.Config.Products())/r.Peak + float64(m.Config.AttentionProducts(seen))/r.Attention) / 1e6
		}
		if want := max(read, multiply); !near(row.RoofMS, want) {
			t.Errorf("the roof of %d rows is %g ms, want the larger of reading in %g ms and multiplying in %g ms", row.N, row.RoofMS, read, multiply)
		}
	}
	if !near(r.ReadShare*r.Rows[0].MS, read) {
		t.Errorf("read share %g of a pass of %g ms that reads for %g ms", r.ReadShare, r.Rows[0].MS, read)
	}
}

// Experts are counted. The controller expects those that a row reads, and those of the largest
// pass, from which it predicts the others; TestCost has none of a model that has none.
func TestCostOfExperts(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte several times")
	}
	m := open(t, "tiny-olmoe")
	r, err := Cost(context.Background(), m, CostOptions{Type: gemm.F32, Rounds: 1, Rows: []int{3, 5}})
	if err != nil {
		t.Fatal(err)
	}
	experts := m.Config.Layers * m.Config.Used
	for i, row := range r.Rows {
		if row.Experts < experts || row.Experts > row.N*experts || row.Experts > m.Config.Layers*m.Config.Experts {
			t.Errorf("%d rows read %d experts, one reads %d", row.N, row.Experts, experts)
		}
		if i != 1 && !near(row.Expected, 1) {
			t.Errorf("%d rows are expected to read %g of the %d experts that they read", row.N, row.Expected, row.Experts)
		}
	}
}

// A query is multiplied by the keys of all positions that it sees, and its weights by as many
// values. In a layer with a window it sees only the window.
func TestAttentionProducts(t *testing.T) {
	for _, shape := range []string{"tiny-llama2", "tiny-mistral", "tiny-gemma2"} {
		c := open(t, shape).Config
		for _, positions := range []int{1, c.Window, c.Window + 1, 5 * (c.Window + 1)} {
			want := 0
			for layer := range c.Layers {
				seen := positions
				if c.Window > 0 && c.Windowed[layer] {
					seen = min(positions, c.Window)
				}
				want += c.Heads * 2 * seen * c.HeadDim
			}
			if got := c.AttentionProducts(positions); got != want {
				t.Errorf("%s: %d products over %d positions, want %d", shape, got, positions, want)
			}
		}
	}
}

// For layers with a window the roof counts the window's pages, however long the text is.
func TestCostOfWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte several times")
	}
	m := open(t, "tiny-mistral") // windows of 70 in all layers
	for _, committed := range []int{40, 320} {
		r, err := Cost(context.Background(), m, CostOptions{Type: gemm.F32, Rounds: 1, Committed: committed})
		if err != nil {
			t.Fatal(err)
		}
		tokens := committed
		if committed > 70 {
			tokens = 96 // three pages of 32
		}
		read := float64(r.Weights+tokens*r.Cache) / r.Bandwidth / 1e6
		if r.CacheRead != tokens*r.Cache || !near(r.ReadShare*r.Rows[0].MS, read) || r.Rows[0].RoofMS < read*0.999 {
			t.Errorf("after %d tokens a pass reads %d bytes of keys and values in %g ms, want those of %d tokens in %g ms",
				committed, r.CacheRead, r.ReadShare*r.Rows[0].MS, tokens, read)
		}
	}
}

func near(a, b float64) bool { return a > 0.999*b && a < 1.001*b }

func TestCostRefuses(t *testing.T) {
	m := open(t, "tiny-llama2")
	for _, o := range []CostOptions{{Rows: []int{0}}, {Rows: []int{-4}}, {Rounds: -1}, {Committed: -1}, {Committed: 1 << 20}} {
		if _, err := Cost(context.Background(), m, o); err == nil {
			t.Errorf("%+v was measured", o)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Cost(ctx, m, CostOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that had ended: %v", err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{5, 100, 1}, 5}} {
		if got := median(c.v); got != c.want {
			t.Errorf("median is %g, want %g", got, c.want)
		}
	}
	if got := median([]time.Duration{4, 2, 3}); got != 3 {
		t.Errorf("median is %d, want 3", got)
	}
}
