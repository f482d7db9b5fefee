package autograd

import (
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// Selector rescores the likeliest tokens of a row, as DFlash 2 does: the score of a token is its
// logit plus ⟨latent, S[token]⟩. It adds the cross-entropy over these tokens to the loss. If the
// right token is not among them, it replaces the last one.
type Selector struct {
	Latent nn.Mat     // one for each row
	Token  *nn.Linear // S, a row for each token
	Top    int        // tokens per row
	Weight float32    // of the cross-entropy, relative to the rest of the loss
}

// choice is the tokens of a row that are scored, the likeliest first, and their scores, which are
// later replaced by the loss's gradient with respect to them.
type choice struct {
	tokens []int32
	scores []float32
	right  int  // the place of the right token
	given  bool // it was not among the likeliest
	loss   float64
	best   bool // the right token has the largest score, and was among them
}

// room returns choices for the given number of rows; nil if s is nil.
func (s *Selector) room(rows int) []choice {
	if s == nil {
		return nil
	}
	return make([]choice, rows)
}

// choose scores the tokens of a row whose logits are p.
func (c *choice) choose(s *Selector, row int, p []float32, target int32) {
	c.tokens, c.scores = make([]int32, s.Top), make([]float32, s.Top)
	n := simd.TopK(p, c.tokens, c.scores)
	c.tokens, c.scores = c.tokens[:n], c.scores[:n]
	c.right = -1
	for i, token := range c.tokens {
		if token == target {
			c.right = i
		}
	}
	if c.right < 0 {
		c.given = true
		c.right = n - 1
		c.tokens[c.right] = target
		c.scores[c.right] = p[target]
	}
	word := make([]float32, s.Latent.Cols)
	for i, token := range c.tokens {
		s.Token.W.Row(word, int(token))
		c.scores[i] += float32(dot(word, s.Latent.Row(row)))
	}
	c.best = !c.given && simd.ArgMax(c.scores) == c.right
	c.loss = float64(simd.LogSumExp(c.scores)) - float64(c.scores[c.right])
	simd.Softmax(c.scores, 1)
	c.scores[c.right]--
}

// add adds the choice's loss, times weight, to that of the row, and its gradient to that of the row's logits.
func (c *choice) add(r *lossRow, weight float32) {
	r.Loss += float64(weight) * c.loss
	r.Correct = c.best
	simd.Scale(c.scores, r.weight*r.scale*weight)
	for i, token := range c.tokens {
		r.p[token] += c.scores[i]
	}
}

// backward takes the gradients of the scores of rows, starting at row from, to the latents and to S.
func (s *Selector) backward(t *Tape, from int, chosen []choice) {
	d, carried := Grad(s.Latent)
	words := t.params.Of(s.Token.W)
	word := make([]float32, s.Latent.Cols)
	for i := range chosen {
		for k, token := range chosen[i].tokens {
			g := chosen[i].scores[k]
			if carried {
				s.Token.W.Row(word, int(token))
				simd.Axpy(d.Row(from+i), g, word)
			}
			if words != nil {
				simd.Axpy(words.GradMat().Row(int(token)), g, s.Latent.Row(from+i))
			}
		}
	}
}
