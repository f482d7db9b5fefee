// Learning computes the logits of only a few hundred tokens: those that the target thought likely
// somewhere in the batch, and those that the drafter guessed. That saves most of the cost of a step,
// and the tokens left out are those that neither of the two would choose.

package learn

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// list is the output over some tokens.
type list struct {
	tokens []int32         // of the target, ascending
	at     map[int32]int32 // of a token, its place
	rows   []int32         // of the head's matrix
	of     Head            // the head that reverse is made for
	back   output.Rows
	head   nn.Linear
	logits nn.Buffer
	values []float32
	bytes  []byte
}

// listSide is the multiple that lists are rounded up to with the tokens that come next, to make few shapes of matrices.
const listSide = 256

// reset lists the tokens of a batch.
func (l *list) reset(h Head, b *Batch) {
	_, out, tokens := h.Output()
	if l.at == nil {
		l.at = map[int32]int32{}
	}
	if l.of != h {
		l.back = output.RowsOf(tokens)
	}
	l.of = h
	clear(l.at)
	l.tokens = l.tokens[:0]
	add := func(token int32) {
		if _, ok := l.at[token]; ok || l.back.Row(token) < 0 {
			return
		}
		l.at[token] = 0
		l.tokens = append(l.tokens, token)
	}
	for _, x := range b.Examples {
		for _, c := range x.Said {
			add(c.Token)
		}
		for _, t := range x.Tokens[x.From:] {
			add(t)
		}
		for _, t := range x.Drafted {
			add(t)
		}
	}
	for row := int32(0); len(l.tokens)%listSide != 0 && int(row) < out.W.Out(); row++ {
		if tokens == nil {
			add(row)
		} else {
			add(tokens[row])
		}
	}
	slices.Sort(l.tokens)
	l.rows = l.rows[:0]
	for i, t := range l.tokens {
		l.at[t] = int32(i)
		l.rows = append(l.rows, l.back.Row(t))
	}
}

// pack gathers the rows of the matrix.
func (l *list) pack(t *autograd.Tape) error {
	_, out, _ := l.of.Output()
	in := out.W.In()
	l.values = slices.Grow(l.values[:0], in)[:in]
	l.bytes = l.bytes[:0]
	for _, r := range l.rows {
		out.W.Row(l.values, int(r))
		for _, v := range l.values {
			l.bytes = binary.LittleEndian.AppendUint32(l.bytes, math.Float32bits(v))
		}
	}
	if w := l.head.W; w == nil || w.Out() != len(l.rows) {
		if w != nil {
			t.Forget(w)
		}
		m, err := gemm.New(gemm.F32, len(l.rows), in)
		if err != nil {
			return err
		}
		l.head.W = m
	} else {
		t.Forget(w)
	}
	l.head.W.PackPanels(l.bytes, 0, l.head.W.Panels())
	l.head.Scale, l.head.Cap = out.Scale, out.Cap
	if out.Bias != nil {
		l.head.Bias = l.head.Bias[:0]
		for _, r := range l.rows {
			l.head.Bias = append(l.head.Bias, out.Bias[r])
		}
	}
	return nil
}

// targets returns the distributions that rows should learn, and the weight of them all.
func (l *list) targets(b *Batch, rows []Row, o Study) (autograd.Targets, float32) {
	t := autograd.Targets{Share: 1}
	total := float32(0)
	for _, r := range rows {
		token, weight := int32(-1), float32(0)
		if x, ok := b.place(r); ok && (!o.Rejected || x.Rejected && r.At == x.Root+x.Accepted+1) {
			if at, ok := l.at[b.Examples[r.Example].Tokens[r.At]]; ok {
				token, weight = at, 1
				if o.Gamma > 0 && !o.Rejected {
					weight = float32(math.Exp(-float64(r.Step-1) / o.Gamma))
				}
			}
		}
		t.Token, t.Weight = append(t.Token, token), append(t.Weight, weight)
		total += weight
	}
	t.Teacher = func(from, to int, q nn.Mat) {
		for i := range q.Rows {
			r, dst := rows[from+i], q.Row(i)
			for j := range dst {
				dst[j] = unlikely
			}
			if t.Token[from+i] < 0 {
				continue
			}
			for _, c := range b.Examples[r.Example].said(r.At - 1) {
				if at, ok := l.at[c.Token]; ok {
					dst[at] = c.LogProb
				}
			}
		}
	}
	return t, total
}

// unlikely is the log-probability of tokens that the target did not think likely.
const unlikely = -18

// place returns the round of a row, and whether its place in the text can be learned.
func (b *Batch) place(r Row) (*Round, bool) {
	if r.Example < 0 {
		return nil, false
	}
	l := b.Examples[r.Example]
	return &l.Rounds[r.Round], r.At < len(l.Tokens) && r.At > l.From && (r.At-1-l.From+1)*Places <= len(l.Said)
}

// half is the probability at which a token is drafted in about every second tree.
const half = 0.1

// lengths returns, for every round of the batch in order, how many places below its root are expected
// to be accepted before the first that is not. A place where the head gives the target's token the
// probability p counts p/(p + half). Rows of a round come in the order of their
// places.
func (l *list) lengths(e *nn.Exec, src nn.Source, b *Batch, rows []Row) []float64 {
	out := l.logits.Mat(len(rows), len(l.tokens))
	e.Linear(src, nn.Proj{Linear: &l.head, Dst: out})
	number := map[[2]int]int{}
	b.Each(func(example, round int, _ *Example, _ *Round) { number[[2]int{example, round}] = len(number) })
	sum, reach := make([]float64, len(number)), slices.Repeat([]float64{1}, len(number))
	for i, r := range rows {
		if _, ok := b.place(r); !ok {
			continue
		}
		n := number[[2]int{r.Example, r.Round}]
		p := 0.0
		if at, ok := l.at[b.Examples[r.Example].Tokens[r.At]]; ok {
			logits := out.Row(i)
			p = math.Exp(float64(logits[at]) - float64(simd.LogSumExp(logits)))
			if math.IsNaN(p) {
				p = 0 // a head whose logits are not numbers drafts nothing
			}
		}
		reach[n] *= p / (p + half)
		sum[n] += reach[n]
	}
	return sum
}
