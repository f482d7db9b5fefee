package falcon_test

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// oracle computes a head by the definition in its authors' code, in f64 and row by row, over
// weights in F32. It shares no code with the head.
type oracle struct{ n *falcon.Network }

// line is a row: its token, its feature and its place.
type line struct {
	token   int32
	feature []float64
	place   int
	before  int   // the previous row; -1: none
	sees    []int // other rows, and itself
}

func dot(w []float32, x []float64) (sum float64) {
	for i, v := range w {
		sum += float64(v) * x[i]
	}
	return sum
}

func (o oracle) linear(l *nn.Linear, x []float64) []float64 {
	y, row := make([]float64, l.W.Out()), make([]float32, l.W.In())
	for i := range y {
		l.W.Row(row, i)
		y[i] = dot(row, x)
		if l.Bias != nil {
			y[i] += float64(l.Bias[i])
		}
	}
	return y
}

func norm(n *nn.Norm, x []float64) []float64 {
	sum, y := 0.0, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+float64(n.Eps)) * float64(n.Weight[i])
	}
	return y
}

// rotate applies the rotary encoding to a head's numbers in halves.
func (o oracle) rotate(x []float64, place int) {
	half := o.n.Rope.Dims / 2
	for i := range half {
		a := float64(place) * math.Pow(o.n.Rope.Base, -float64(i)/float64(half))
		u, v := x[i], x[half+i]
		x[i], x[half+i] = u*math.Cos(a)-v*math.Sin(a), v*math.Cos(a)+u*math.Sin(a)
	}
}

// states returns those of the rows.
func (o oracle) states(lines []line) [][]float64 {
	n, sigmoid := o.n, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	x := make([][]float64, len(lines))
	for i, l := range lines {
		e := make([]float32, n.Hidden)
		n.Embed.Row(e, int(l.token))
		for _, v := range e {
			x[i] = append(x[i], float64(v))
		}
		x[i] = append(x[i], l.feature...)
	}
	for k := range n.LSTM {
		h, c := make([][]float64, len(lines)), make([][]float64, len(lines))
		for i, l := range lines {
			gates := o.linear(&n.LSTM[k].In, x[i])
			if n.Recurrent && l.before >= 0 {
				for j, v := range o.linear(&n.LSTM[k].State, h[l.before]) {
					gates[j] += v
				}
			} else if n.Recurrent {
				for j, b := range n.LSTM[k].State.Bias {
					gates[j] += float64(b)
				}
			}
			for d := range n.Hidden {
				v := sigmoid(gates[d]) * math.Tanh(gates[2*n.Hidden+d])
				if n.Recurrent && l.before >= 0 {
					v += sigmoid(gates[n.Hidden+d]) * c[l.before][d]
				}
				c[i], h[i] = append(c[i], v), append(h[i], sigmoid(gates[3*n.Hidden+d])*math.Tanh(v))
			}
		}
		x = h
	}
	for k := range n.Blocks {
		o.layer(&n.Blocks[k], k, lines, x)
	}
	return x
}

// layer runs a layer in place.
func (o oracle) layer(b *nn.Block, number int, lines []line, x [][]float64) {
	n := o.n
	q := make([][]float64, len(x))
	keys := make([][]float64, len(x))
	values := make([][]float64, len(x))
	for i := range x {
		in := x[i]
		if number > 0 {
			in = norm(&b.AttnNorm, in)
		}
		q[i] = o.linear(&b.QKV[0], in)
		keys[i] = o.linear(&b.QKV[1], in)
		values[i] = o.linear(&b.QKV[2], in)
		for at := 0; at < len(q[i]); at += n.HeadDim {
			o.turn(q[i][at:at+n.HeadDim], b.Attn.QNorm, lines[i].place)
		}
		for at := 0; at < len(keys[i]); at += n.HeadDim {
			o.turn(keys[i][at:at+n.HeadDim], b.Attn.KNorm, lines[i].place)
		}
	}
	for i := range x {
		var out []float64
		for head := range n.Heads {
			kv := head / (n.Heads / n.KVHeads) * n.HeadDim
			query := q[i][head*n.HeadDim : (head+1)*n.HeadDim]
			weights := make([]float64, len(lines[i].sees))
			sum := 0.0
			most := math.Inf(-1)
			for s, j := range lines[i].sees {
				for d, v := range query {
					weights[s] += v * keys[j][kv+d] / math.Sqrt(float64(n.HeadDim))
				}
				most = max(most, weights[s])
			}
			for s := range weights {
				weights[s] = math.Exp(weights[s] - most)
				sum += weights[s]
			}
			y := make([]float64, n.HeadDim)
			for s, j := range lines[i].sees {
				for d := range y {
					y[d] += weights[s] / sum * values[j][kv+d]
				}
			}
			out = append(out, y...)
		}
		q[i] = out
	}
	for i := range x {
		x[i] = append([]float64(nil), x[i]...)
		for d, v := range o.linear(&b.Out, q[i]) {
			x[i][d] += v
		}
		in := norm(&b.MLPNorm, x[i])
		inner, up := o.linear(b.MLP.Gate, in), o.linear(&b.MLP.Up, in)
		for d, v := range inner {
			inner[d] = v / (1 + math.Exp(-v)) * up[d]
		}
		for d, v := range o.linear(&b.MLP.Down, inner) {
			x[i][d] += v
		}
	}
}

func (o oracle) turn(x []float64, n *nn.Norm, place int) {
	if n != nil {
		copy(x, norm(n, x))
	}
	o.rotate(x, place)
}

// text returns the rows of a text whose last token is the root: in blocks of k, with the last k
// rows as a block of their own.
func (o oracle) text(s *drafttest.Sequence) (lines []line) {
	k, all := o.n.Block, append(append([]int32(nil), s.Text...), s.Root)
	n := len(s.Text)
	pass := drafttest.Pass{Text: s.ID, Hidden: o.n.Hidden, Tree: tree.Chain(s.Text)}
	for i := range n {
		end := min(i/k*k+k, n-k)
		if i >= n-k {
			end = n
		}
		l := line{token: all[i+1], place: i, before: i - 1}
		var tap []float64
		for _, v := range pass.Tap(0, 0, i) {
			tap = append(tap, float64(v))
		}
		l.feature = norm(&o.n.GNorm, tap)
		for j := range end {
			l.sees = append(l.sees, j)
		}
		lines = append(lines, l)
	}
	return lines
}

// block returns rows with another block below row last, made of the tokens of a path.
func (o oracle) block(lines []line, last int, path []int32, states [][]float64) []line {
	k, first := o.n.Block, len(lines)
	lines = append([]line(nil), lines...)
	for i, token := range path {
		l := line{token: token, feature: states[last-k+1+i], place: lines[last].place + 1 + i, before: first + i - 1}
		if i == 0 {
			l.before = last
		}
		l.sees = append(l.sees, lines[last].sees...)
		for j := range k {
			l.sees = append(l.sees, first+j)
		}
		lines = append(lines, l)
	}
	return lines
}

// logs returns the log-probabilities of what follows a row.
func (o oracle) logs(state []float64) []float64 {
	y, sum := o.linear(&o.n.Head, state), 0.0
	most := math.Inf(-1)
	for _, v := range y {
		most = max(most, v)
	}
	for _, v := range y {
		sum += math.Exp(v - most)
	}
	for i := range y {
		y[i] -= most + math.Log(sum)
	}
	return y
}
