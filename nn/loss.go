package nn

import (
	"math"

	"github.com/grovellm/grove/internal/simd"
)

// Targets is what a head's rows should predict.
type Targets struct {
	Token  []int32   // per row, the right token; a row of −1 counts for nothing
	Weight []float32 // per row; nil: 1 each

	// Teacher fills q, (to−from) × vocabulary, with another model's probabilities for rows
	// [from, to). The loss is then (1−Share)·cross-entropy + Share·KL(q ‖ p): distillation by
	// forward KL.
	Teacher func(from, to int, q Mat)
	Share   float32
}

// Loss is the outcome of a loss over some rows.
type Loss struct {
	Sum     float64 // Σ weight · loss, in nats
	Hard    float64 // Σ weight · cross-entropy of the right tokens alone
	Weight  float64
	Rows    int // that count
	Correct int // rows whose most likely token is the right one
}

// Add adds another outcome.
func (l *Loss) Add(o Loss) {
	l.Sum += o.Sum
	l.Hard += o.Hard
	l.Weight += o.Weight
	l.Rows += o.Rows
	l.Correct += o.Correct
}

// lossRows is the number of rows whose logits live at a time: 256 rows of 16,384 logits are
// 16 MiB, which stay in the last cache between the product and the gradient.
const lossRows = 256

// CrossEntropy computes the softmax cross-entropy of head·source against the targets; scale
// multiplies its gradient (1 over the rows of a batch, say). Logits are made, and taken back to the
// source, a few rows at a time. buf holds them where there is no tape.
func (e *Exec) CrossEntropy(src Source, head *Linear, targets Targets, scale float32, buf *Buffer) Loss {
	t, n := e.tape, src.X.Rows
	rows, hard := make([]float64, n), make([]float64, n)
	correct := make([]bool, n)
	var din Mat
	var keep *linearRecord
	if t != nil {
		// The head's record is walked back from din, filled in here part by part.
		keep = &linearRecord{src: src, in: src.X, x: src.X}
		keep.in = t.plain(n, src.X.Cols)
		if src.Norm != nil {
			keep.x = t.plain(n, src.X.Cols)
			keep.x.grad = src.X.grad
			for i := range n {
				copy(keep.x.Row(i), src.X.Row(i))
			}
		}
		din = t.plain(n, src.X.Cols)
		t.record(&lossRecord{keep, din})
	}
	for from := 0; from < n; from += lossRows {
		to := min(from+lossRows, n)
		part := src
		part.X = src.X.Slice(from, to)
		if src.Act == SiLUMul {
			part.Up = src.Up.Slice(from, to)
		}
		var logits, q Mat
		var slab, used int
		if t != nil {
			slab, used = t.arena.mark()
			logits = t.plain(to-from, head.W.Out())
			e.tape = nil // its gradient is taken below
		} else {
			logits = buf.Mat(to-from, head.W.Out())
		}
		e.Linear(part, Proj{head, logits})
		e.tape = t
		if targets.Teacher != nil {
			if t != nil {
				q = t.plain(to-from, head.W.Out())
			} else {
				q = Mat{Rows: to - from, Cols: head.W.Out(), Stride: head.W.Out(), Data: make([]float32, (to-from)*head.W.Out())}
			}
			targets.Teacher(from, to, q)
		}
		each(e.pool, to-from, func(_, r int) {
			i := from + r
			l := lossRow{p: logits.Row(r), target: targets.Token[i], weight: 1, share: targets.Share, scale: scale}
			if targets.Weight != nil {
				l.weight = targets.Weight[i]
			}
			if targets.Teacher != nil {
				l.q = q.Row(r)
			}
			l.run(t != nil)
			rows[i], hard[i], correct[i] = l.loss, l.hard, l.correct
		})
		if t != nil {
			e.sourceRows(part, keep.in.Slice(from, to))
			if w := t.params.Of(head.W); w != nil {
				t.addTMul(w.gradMat(), logits, keep.in.Slice(from, to))
			}
			if b := t.gradOf(head.Bias); b != nil {
				t.columnSums(b, logits)
			}
			t.products.mul(din.Slice(from, to), t.transposed(head.W), logits, false)
			t.arena.release(slab, used)
		}
	}
	var out Loss
	for i := range n {
		if targets.Token[i] < 0 {
			continue
		}
		w := 1.0
		if targets.Weight != nil {
			w = float64(targets.Weight[i])
		}
		out.Sum += w * rows[i]
		out.Hard += w * hard[i]
		out.Weight += w
		out.Rows++
		if correct[i] {
			out.Correct++
		}
	}
	return out
}

// sourceRows writes the rows of a source, as products read them, to dst.
func (e *Exec) sourceRows(src Source, dst Mat) {
	each(e.pool, dst.Rows, func(_, i int) { copy(dst.Row(i), src.row(i, dst.Row(i))) })
}

type lossRecord struct {
	head *linearRecord
	din  Mat
}

func (r *lossRecord) backward(t *Tape) {
	if r.head.src.X.grad != nil || r.head.src.Norm != nil {
		t.sourceBackward(&r.head.src, r.head.x, r.din)
	}
}

// lossRow is the loss of one row. p holds its logits, and afterwards the loss's gradient by them.
type lossRow struct {
	p, q    []float32
	target  int32
	weight  float32
	share   float32
	scale   float32
	loss    float64
	hard    float64
	correct bool
}

// run computes the loss and, when wanted, turns the logits into its gradient,
// weight·scale·(p − (1−share)·onehot − share·q).
func (l *lossRow) run(gradient bool) {
	if l.target < 0 || l.weight == 0 {
		clear(l.p)
		return
	}
	y := l.p[l.target]
	best := simd.ArgMax(l.p)
	l.correct = best == int(l.target)
	lse := float64(simd.LogSumExp(l.p))
	l.hard = lse - float64(y)
	l.loss = l.hard
	if l.q != nil {
		var kl float64
		for i, q := range l.q {
			if q > 0 {
				kl += float64(q) * (math.Log(float64(q)) - float64(l.p[i]) + lse)
			}
		}
		l.loss = float64(1-l.share)*l.hard + float64(l.share)*kl
	}
	if !gradient {
		return
	}
	simd.Softmax(l.p, 1)
	w := l.weight * l.scale
	simd.Scale(l.p, w)
	hard := w
	if l.q != nil {
		simd.Axpy(l.p, -w*l.share, l.q)
		hard = w * (1 - l.share)
	}
	l.p[l.target] -= hard
}
