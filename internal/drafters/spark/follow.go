// How a token is scored given the tokens before it.

package spark

import (
	"github.com/grovellm/grove/internal/nn"
)

// candidates is the number of tokens of a row that are rescored below every node, if the kind does not set one.
const candidates = 128

// Candidates returns the number of tokens of a row that are scored.
func (b *blocks) Candidates() int {
	if b.n.Variant == dflash2 {
		return b.n.Top
	}
	return candidates
}

// Prepare normalises the states of the requested rows, and projects them for DFlash 2.
func (b *blocks) Prepare(e *nn.Exec, rows nn.Mat) {
	n := b.n
	b.states = b.bufs.states.Mat(rows.Rows, rows.Cols)
	e.Normalise(&n.Base.Norm, rows, b.states)
	if n.Variant == dflash2 {
		b.mixed = b.bufs.mixed.Mat(rows.Rows, n.Rank)
		e.Linear(nn.Source{X: b.states}, nn.Proj{Linear: &n.mix, Dst: b.mixed})
	}
}

// Follow implements onepass.Corrector.
func (b *blocks) Follow(e *nn.Exec, row, depth int, token int32, before []float32, tokens []int32,
	scores []float32) (after []float32, ok bool) {
	n, state := b.n, b.states.Row(row)
	var latent []float32
	switch n.Variant {
	case dflash2:
		latent = n.rowBefore(token)
		for i, x := range b.mixed.Row(row) {
			latent[i] *= x
		}
	case domino:
		after = n.step(e, before, token)
		if depth <= n.Prefix {
			return after, true
		}
		latent = apply(e, &n.mix, state, after)
		silu(latent)
	default:
		embed := n.rowBefore(token)
		if n.Confidence != noConfidence && !b.sure(e, state, embed) {
			return nil, false
		}
		latent, after = n.markov(e, state, embed, before)
	}
	word := make([]float32, n.Rank)
	for i, t := range tokens {
		n.token.W.Row(word, b.place(t))
		sum := float32(0)
		for j, x := range word {
			sum += x * latent[j]
		}
		scores[i] += sum
	}
	return after, true
}

// place returns a token's row of the output.
func (b *blocks) place(token int32) int {
	if b.places == nil {
		return int(token)
	}
	return int(b.places[token])
}

// rowBefore returns the row for the previous token.
func (n *Network) rowBefore(token int32) []float32 {
	row := make([]float32, n.Rank)
	n.before.Row(row, int(token))
	return row
}

// markov computes DSpark's correction: the vector that W2 multiplies, and the state of the path with the token.
func (n *Network) markov(e *nn.Exec, state, embed, before []float32) (latent, after []float32) {
	switch n.Markov {
	case gated:
		gate := apply(e, &n.mix, state, embed)
		nn.Sigmoid(gate)
		for i := range gate {
			gate[i] *= embed[i]
		}
		return gate, nil
	case rnn:
		if before == nil {
			before = make([]float32, n.Rank)
		}
		joint := apply(e, &n.mix, before, embed, state)
		gate, next := joint[:n.Rank], joint[n.Rank:2*n.Rank]
		out := joint[2*n.Rank:]
		nn.Sigmoid(gate)
		tanh(next)
		tanh(out)
		after = make([]float32, n.Rank)
		for i, g := range gate {
			after[i] = g*before[i] + (1-g)*next[i]
		}
		return out, after
	}
	return embed, nil
}

// sure reports whether DSpark's confidence in a row reaches the threshold.
func (b *blocks) sure(e *nn.Exec, state, embed []float32) bool {
	if b.least == 0 {
		return true
	}
	if b.n.Confidence == stateConfident {
		embed = nil
	}
	c := apply(e, &b.n.sure, state, embed)
	nn.Sigmoid(c)
	return float64(c[0]) >= b.least
}

// step applies Domino's GRU to the embedding of a token.
func (n *Network) step(e *nn.Exec, before []float32, token int32) []float32 {
	embed := make([]float32, n.Hidden)
	n.Base.Embed.Row(embed, int(token))
	if before == nil {
		before = make([]float32, n.Width)
	}
	in, of := apply(e, &n.gru[0], embed), apply(e, &n.gru[1], before)
	w := n.Width
	for i := range 2 * w {
		in[i] += of[i]
	}
	reset, keep := in[:w], in[w:2*w]
	next := in[2*w:]
	nn.Sigmoid(reset)
	nn.Sigmoid(keep)
	for i := range next {
		next[i] += reset[i] * of[2*w+i]
	}
	tanh(next)
	after := make([]float32, w)
	for i, z := range keep {
		after[i] = (1-z)*next[i] + z*before[i]
	}
	return after
}

// apply returns the product of l with a vector given in parts.
func apply(e *nn.Exec, l *nn.Linear, parts ...[]float32) []float32 {
	var x []float32
	for _, p := range parts {
		x = append(x, p...)
	}
	out := nn.NewMat(1, l.W.Out())
	e.Linear(nn.Source{X: nn.Mat{Rows: 1, Cols: len(x), Stride: len(x), Data: x}}, nn.Proj{Linear: l, Dst: out})
	return out.Row(0)
}

// tanh computes 2·σ(2x) − 1 in place.
func tanh(x []float32) {
	for i := range x {
		x[i] *= 2
	}
	nn.Sigmoid(x)
	for i := range x {
		x[i] = 2*x[i] - 1
	}
}

func silu(x []float32) {
	gate := append([]float32(nil), x...)
	nn.Sigmoid(gate)
	for i := range x {
		x[i] *= gate[i]
	}
}
