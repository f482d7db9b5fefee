package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// lossCheck is a head over a source, and random targets for its rows.
type lossCheck struct {
	*gradCheck
	rows, vocab int
	source      func() nn.Source
	head        nn.Linear
	targets     Targets
	scale       float32

	plus, latent func() nn.Mat // for Targets.Plus and Targets.Selector; may be nil
	by, words    nn.Linear
}

// loss returns the loss of the source.
func (c *lossCheck) loss() Loss {
	x := c.source()
	if c.plus != nil {
		c.targets.Plus = &Plus{c.plus(), &c.by}
	}
	if c.latent != nil {
		c.targets.Selector = &Selector{c.latent(), &c.words, c.vocab, 0.7}
	}
	return c.tape.CrossEntropy(x, &c.head, c.targets, c.scale)
}

// product multiplies the rows of src by l, with the tape detached.
func (c *lossCheck) product(src nn.Source, l *nn.Linear) nn.Mat {
	m := c.exec.Mat(new(nn.Buffer), c.rows, c.vocab)
	c.exec.Linear(src, nn.Proj{Linear: l, Dst: m})
	return m
}

func drawLossCheck(t *rapid.T, r *rand.Rand) *lossCheck {
	g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
	n := rapid.IntRange(1, 300).Draw(t, "rows")
	in := rapid.IntRange(1, 12).Draw(t, "in")
	vocab := rapid.IntRange(2, 60).Draw(t, "vocabulary")
	c := &lossCheck{gradCheck: g, rows: n, vocab: vocab, scale: 0.5 + r.Float32()}
	x := g.source(t, r, "x", n, in)
	c.head = g.linear(t, r, "head", vocab, in, rapid.Bool().Draw(t, "bias"))
	var norm *nn.Norm
	if rapid.Bool().Draw(t, "norm") {
		norm = g.norm("norm", in, false)
	}
	c.source = func() nn.Source { return nn.Source{X: x(), Norm: norm} }
	for range n {
		c.targets.Token = append(c.targets.Token, int32(r.IntN(vocab+1))-1)
	}
	if rapid.Bool().Draw(t, "weights") {
		for range n {
			c.targets.Weight = append(c.targets.Weight, r.Float32())
		}
	}
	return c
}

// check compares the loss with its definition, a function of a row's logits, and the gradients with respect
// to the source, the head and the norm with finite differences. size is about the largest term of a row.
func (c *lossCheck) check(t *rapid.T, r *rand.Rand, define func(row int, logits []float32) float64, size float64) {
	t.Helper()
	c.draw(r)

	c.tape.Detach()
	got, want := c.loss(), 0.0
	logits := c.product(c.source(), &c.head)
	if c.plus != nil {
		more := c.product(nn.Source{X: c.plus()}, &c.by)
		for i := range c.rows {
			for j, v := range more.Row(i) {
				logits.Row(i)[j] += v
			}
		}
	}
	for i, target := range c.targets.Token {
		if target < 0 {
			continue
		}
		want += float64(c.targets.weight(i)) * define(i, logits.Row(i))
		if c.latent != nil {
			scores := c.product(nn.Source{X: c.latent()}, &c.words).Row(i)
			for j, v := range logits.Row(i) {
				scores[j] += v
			}
			want += float64(c.targets.weight(i)) * 0.7 * defineLoss(scores, nil, int(target), 0, nil)
		}
	}
	size *= float64(c.rows)
	if math.Abs(got.Sum-want) > 1e-5*(math.Abs(want)+size) {
		t.Fatalf("loss %g, by its definition %g", got.Sum, want)
	}

	c.params.ZeroGrad()
	c.tape.Reset()
	c.tape.Attach()
	if again := c.loss(); again != got {
		t.Fatalf("loss %v under a tape, %v without", again, got)
	}
	c.tape.Backward()
	c.differences(t, r, func() float64 { return c.loss().Sum * float64(c.scale) }, size)
}

// The fused loss compared with its definition in f64, with label masks, weights and a teacher; and
// its gradient with respect to the source, the head and the norm compared with finite differences.
func TestCrossEntropyGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		c := drawLossCheck(t, r)
		teacher := make([][]float32, c.rows)
		if rapid.Bool().Draw(t, "teacher") {
			for i := range teacher {
				teacher[i] = randomRow(r, c.vocab)
			}
			c.targets.Share = r.Float32()
			c.targets.Teacher = func(from, to int, q nn.Mat) {
				for i := from; i < to; i++ {
					copy(q.Row(i-from), teacher[i])
				}
			}
		}
		c.check(t, r, func(row int, logits []float32) float64 {
			return defineLoss(logits, teacher[row], int(c.targets.Token[row]), float64(c.targets.Share), &plainSoft)
		}, 1)
	})
}

// The same with another product in addition to the head's, and with a selector over all tokens.
func TestCorrectedGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		c := drawLossCheck(t, r)
		if rapid.Bool().Draw(t, "cap") {
			c.head.Cap = 3
		}
		selects := rapid.Bool().Draw(t, "selects")
		if !selects || rapid.Bool().Draw(t, "plus") {
			rank := rapid.IntRange(1, 9).Draw(t, "rank")
			c.plus = c.gradCheck.source(t, r, "plus", c.rows, rank)
			c.by = c.linear(t, r, "by", c.vocab, rank, false)
		}
		if selects {
			rank := rapid.IntRange(1, 9).Draw(t, "selector's rank")
			c.latent = c.gradCheck.source(t, r, "latent", c.rows, rank)
			c.words = c.linear(t, r, "words", c.vocab, rank, false)
		}
		c.check(t, r, func(row int, logits []float32) float64 {
			return defineLoss(logits, nil, int(c.targets.Token[row]), 0, nil)
		}, 2)
	})
}

// The same for distributions that rows share, with all divergences and at any temperature.
func TestSoftGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		c := drawLossCheck(t, r)
		s := &Soft{Divergence: rapid.SampledFrom([]Divergence{ForwardKL, ReverseKL, TotalVariation}).Draw(t, "divergence"),
			Temperature: 1}
		if s.Divergence == TotalVariation {
			c.step /= 4 // it has corners where the distributions cross
		}
		if rapid.Bool().Draw(t, "softened") {
			s.Temperature = 0.5 + 2.5*r.Float32()
		}
		c.targets.Soft, c.targets.Share = s, rapid.SampledFrom([]float32{0, 0.3, 1}).Draw(t, "share")

		// A separate teacher, whose distributions are computed in two parts.
		n, in := rapid.IntRange(1, 40).Draw(t, "distributions"), rapid.IntRange(1, 8).Draw(t, "teacher's in")
		teacher := newGradCheck(2)
		x := teacher.source(t, r, "x", n, in)
		head := teacher.linear(t, r, "head", c.vocab, in, true)
		teacher.draw(r)
		teacher.tape.Detach()
		all := x()
		logits := teacher.exec.Mat(new(nn.Buffer), n, c.vocab)
		teacher.exec.Linear(nn.Source{X: all}, nn.Proj{Linear: &head, Dst: logits})
		s.Reset(rapid.IntRange(0, 5).Draw(t, "rows before"), c.vocab) // a step before this one
		s.Reset(n, c.vocab)
		cut := r.IntN(n + 1)
		for _, part := range [][2]int{{cut, n}, {0, cut}} {
			if part[0] < part[1] {
				s.Fill(teacher.exec, part[0], nn.Source{X: all.Slice(part[0], part[1])}, &head)
			}
		}
		for range c.rows {
			s.Row = append(s.Row, int32(r.IntN(n)))
		}
		size := max(1, float64(s.Temperature*s.Temperature))
		c.check(t, r, func(row int, own []float32) float64 {
			return defineLoss(own, logits.Row(int(s.Row[row])), int(c.targets.Token[row]), float64(c.targets.Share), s)
		}, size)
	})
}

// defineLoss returns the loss of a row in f64: (1−share)·cross-entropy + share·T²·divergence of the
// distributions at temperature T.
func defineLoss(logits, teacher []float32, target int, share float64, s *Soft) float64 {
	softmax := func(v []float32, temperature float64) []float64 {
		p, sum := make([]float64, len(v)), 0.0
		for i, x := range v {
			p[i] = math.Exp(float64(x) / temperature)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	hard := -math.Log(softmax(logits, 1)[target])
	if teacher == nil {
		return hard
	}
	temperature := float64(s.Temperature)
	from, to := softmax(teacher, temperature), softmax(logits, temperature)
	if s.Divergence == ReverseKL {
		from, to = to, from
	}
	divergence := 0.0
	for i, p := range from {
		if s.Divergence == TotalVariation {
			divergence += math.Abs(p-to[i]) / 2
		} else {
			divergence += p * math.Log(p/to[i])
		}
	}
	return (1-share)*hard + share*temperature*temperature*divergence
}
