package nn

import (
	"github.com/grovellm/grove/internal/simd"
)

// Targets is what a head's rows should predict.
type Targets struct {
	Token  []int32   // per row, the right token; a row of −1 counts for nothing
	Weight []float32 // per row; nil: 1 each

	// Teacher fills q, (to−from) × vocabulary, with another model's logits for rows [from, to). The
	// loss is then (1−Share)·cross-entropy + Share·KL(softmax q ‖ p): distillation by forward KL.
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
// multiplies its gradient (1 over the rows of a batch, say). Logits are made, and under a tape taken back
// to the source, a few rows at a time.
func (e *Exec) CrossEntropy(src Source, head *Linear, targets Targets, scale float32) Loss {
	n := src.X.Rows
	l := &lossPass{e: e, head: head, targets: targets, scale: scale, outcome: make([]rowLoss, n), scratch: make([][]float32, e.pool.Threads())}
	if t := e.tape; t != nil {
		l.record = &lossRecord{t.newLinear(src, nil), t.plain(n, src.X.Cols)}
		t.record(l.record)
	}
	for from := 0; from < n; from += lossRows {
		l.part(src, from, min(from+lossRows, n))
	}
	var out Loss
	for i, r := range l.outcome {
		if targets.Token[i] < 0 {
			continue
		}
		w := float64(targets.weight(i))
		out.Sum += w * r.loss
		out.Hard += w * r.hard
		out.Weight += w
		out.Rows++
		if r.correct {
			out.Correct++
		}
	}
	return out
}

func (t *Targets) weight(i int) float32 {
	if t.Weight == nil {
		return 1
	}
	return t.Weight[i]
}

// lossRecord takes the gradient of a head's source, made along with the loss, further back.
type lossRecord struct {
	head *linearRecord
	din  Mat
}

func (r *lossRecord) backward(t *Tape) {
	if r.head.needsInput() {
		t.sourceBackward(&r.head.src, r.head.x, r.din)
	}
}

// lossPass is a call of CrossEntropy.
type lossPass struct {
	e       *Exec
	head    *Linear
	targets Targets
	scale   float32
	record  *lossRecord // under a tape
	outcome []rowLoss
	scratch [][]float32 // per worker
}

// rowLoss is the outcome of a row.
type rowLoss struct {
	loss, hard float64
	correct    bool
}

// part computes rows [from, to).
func (l *lossPass) part(src Source, from, to int) {
	e, t := l.e, l.e.tape
	src.X = src.X.Slice(from, to)
	if src.Act == SiLUMul {
		src.Up = src.Up.Slice(from, to)
	}
	vocab := l.head.W.Out()
	var logits, teacher Mat
	if t == nil {
		logits = e.logits.Mat(to-from, vocab)
		if l.targets.Teacher != nil {
			teacher = e.teacher.Mat(to-from, vocab)
		}
	} else {
		slab, used := t.arena.mark()
		defer t.arena.release(slab, used)
		logits = t.plain(to-from, vocab)
		if l.targets.Teacher != nil {
			teacher = t.plain(to-from, vocab)
		}
	}
	e.tape = nil // the gradient of this product is taken below
	e.Linear(src, Proj{Linear: l.head, Dst: logits})
	e.tape = t
	if l.targets.Teacher != nil {
		l.targets.Teacher(from, to, teacher)
	}
	each(e.pool, to-from, func(worker, i int) {
		r := lossRow{p: logits.Row(i), target: l.targets.Token[from+i], weight: l.targets.weight(from + i), share: l.targets.Share, scale: l.scale}
		if l.targets.Teacher != nil {
			l.scratch[worker] = grow(l.scratch[worker], vocab)
			r.q, r.t = teacher.Row(i), l.scratch[worker]
		}
		r.run(t != nil)
		l.outcome[from+i] = r.rowLoss
	})
	if t == nil {
		return
	}
	in := l.record.head.in.Slice(from, to)
	if l.record.head.madeInput() {
		each(e.pool, to-from, func(_, i int) { src.row(i, in.Row(i)) })
	}
	if w := t.params.Of(l.head.W); w != nil {
		t.products.AddTMul(in, [2]Mat{w.GradMat(), logits})
	}
	if b := t.gradOf(l.head.Bias); b != nil {
		t.columnSums(b, logits)
	}
	if l.record.head.needsInput() {
		t.products.mul(l.record.din.Slice(from, to), t.transposed(l.head.W), logits)
	}
}

// lossRow is the loss of one row. p holds its logits, and afterwards the loss's gradient by them; q
// the teacher's, if there is one, and afterwards its probabilities; t is as long, for scratch.
type lossRow struct {
	p, q, t []float32
	target  int32
	weight  float32
	share   float32
	scale   float32
	rowLoss
}

// run computes the loss and, when wanted, turns the logits into its gradient,
// weight·scale·(p − (1−share)·onehot − share·q).
func (l *lossRow) run(gradient bool) {
	if l.target < 0 {
		clear(l.p)
		return
	}
	lse := float64(simd.LogSumExp(l.p))
	l.correct = simd.ArgMax(l.p) == int(l.target)
	l.hard = lse - float64(l.p[l.target])
	l.loss = l.hard
	if l.q != nil {
		// KL(q ‖ p) = Σ q·(log q − log p), with log q = t − lse(t) for the teacher's logits t.
		lseT := float64(simd.LogSumExp(l.q))
		copy(l.t, l.q)
		simd.Softmax(l.q, 1)
		l.loss = float64(1-l.share)*l.hard + float64(l.share)*(dotDiff(l.q, l.t, l.p)+lse-lseT)
	}
	if !gradient {
		return
	}
	w := l.weight * l.scale
	hard := w
	simd.Softmax(l.p, 1)
	simd.Scale(l.p, w)
	if l.q != nil {
		simd.Axpy(l.p, -w*l.share, l.q)
		hard = w * (1 - l.share)
	}
	l.p[l.target] -= hard
}

// dotDiff is Σ q·(t − p).
func dotDiff(q, t, p []float32) float64 {
	var sum float64
	for len(q) > 0 {
		n := min(256, len(q)) // f32 within a part, f64 over all
		var a, b float32
		for i, w := range q[:n&^1] {
			if i&1 == 0 {
				a += w * (t[i] - p[i])
			} else {
				b += w * (t[i] - p[i])
			}
		}
		if n&1 == 1 {
			a += q[n-1] * (t[n-1] - p[n-1])
		}
		sum += float64(a) + float64(b)
		q, t, p = q[n:], t[n:], p[n:]
	}
	return sum
}
