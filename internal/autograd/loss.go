package autograd

import "github.com/grovellm/grove/internal/nn"

// Targets are the tokens that a head's rows should predict.
type Targets struct {
	Token  []int32   // per row, the right token; a row with −1 does not count
	Weight []float32 // per row; nil: 1 each

	// Teacher fills q, (to−from) × vocabulary, with another model's logits for rows [from, to). The
	// loss is then (1−Share)·cross-entropy + Share·KL(softmax q ‖ p): distillation by forward KL.
	// If Soft is set, its divergence and distributions are used instead.
	Teacher func(from, to int, q nn.Mat)
	Soft    *Soft
	Share   float32

	Plus     *Plus     // is added to the logits; nil: nothing
	Selector *Selector // rescores the likeliest tokens, which adds to the loss; nil: none
	Rows     []RowLoss // receives the outcome of each row, if it has room
}

// Plus is a product that is added to a head's logits: rows of X times By.
type Plus struct {
	X  nn.Mat
	By *nn.Linear
}

// Loss is the outcome of a loss over some rows.
type Loss struct {
	Sum     float64 // Σ weight · loss, in nats
	Hard    float64 // Σ weight · cross-entropy of the right tokens
	Weight  float64
	Rows    int // that have a token
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

// lossRows is the number of rows whose logits exist at a time: 256 rows of 16,384 logits are 16
// MiB, which stay in the last-level cache between the product and the gradient.
const lossRows = 256

// CrossEntropy computes the softmax cross-entropy of head·source against the targets; scale
// multiplies its gradient (for example, 1 over the rows of a batch). Logits are computed and, while
// the tape is attached, taken back to the source, a few rows at a time.
func (t *Tape) CrossEntropy(src nn.Source, head *nn.Linear, targets Targets, scale float32) Loss {
	n := src.X.Rows
	l := &lossPass{t: t, head: head, targets: targets, scale: scale, outcome: make([]RowLoss, n),
		scratch: make([][]float32, t.exec.Threads())}
	if t.attached {
		l.record = &lossRecord{t.newLinear(src, nil), t.plain(n, src.Cols())}
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
		out.Sum += w * r.Loss
		out.Hard += w * r.hard
		out.Weight += w
		out.Rows++
		if r.Correct {
			out.Correct++
		}
	}
	copy(targets.Rows, l.outcome)
	return out
}

func (t *Targets) weight(i int) float32 {
	if t.Weight == nil {
		return 1
	}
	return t.Weight[i]
}

// lossRecord takes the gradient of a head's source, computed along with the loss, further back.
type lossRecord struct {
	head *linearRecord
	din  nn.Mat
}

func (r *lossRecord) backward(t *Tape) {
	if r.head.needsInput() {
		r.head.sourceBackward(t, r.din)
	}
}

// lossPass is one call of CrossEntropy.
type lossPass struct {
	t       *Tape
	head    *nn.Linear
	targets Targets
	scale   float32
	record  *lossRecord // while the tape is attached
	outcome []RowLoss
	scratch [][]float32 // per worker
}

// RowLoss is the outcome of a row.
type RowLoss struct {
	Loss       float64
	Divergence float64 // from the teacher's distribution, if there is one
	Correct    bool    // the most likely token, or the one that the selector ranks first, is the right one

	hard float64
}

// part computes rows [from, to).
func (l *lossPass) part(src nn.Source, from, to int) {
	t, e := l.t, l.t.exec
	attached := t.attached
	src.X = src.X.Slice(from, to)
	src.Up = src.Up.Slice(from, to)
	if src.With.Cols > 0 {
		src.With = src.With.Slice(from, to)
	}
	vocab := l.head.W.Out()
	var logits, teacher nn.Mat
	if !attached {
		logits = t.logits.Mat(to-from, vocab)
		if l.targets.Teacher != nil {
			teacher = t.teacher.Mat(to-from, vocab)
		}
	} else {
		defer t.arena.release(t.arena.mark())
		logits = t.plain(to-from, vocab)
		if l.targets.Teacher != nil {
			teacher = t.plain(to-from, vocab)
		}
	}
	t.Detach() // the gradient of this product is taken below
	e.Linear(src, nn.Proj{Linear: l.head, Dst: logits})
	capped := l.plus(logits, from, to, attached)
	if attached {
		t.Attach()
	}
	if l.targets.Teacher != nil {
		l.targets.Teacher(from, to, teacher)
	}
	chosen := l.targets.Selector.room(to - from)
	each(e.Pool(), to-from, func(worker, i int) {
		r := lossRow{p: logits.Row(i), target: l.targets.Token[from+i], weight: l.targets.weight(from + i),
			share: l.targets.Share, scale: l.scale}
		l.scratch[worker] = grow(l.scratch[worker], vocab)
		r.t = l.scratch[worker][:vocab]
		switch soft := l.targets.Soft; {
		case soft != nil:
			r.soft = soft
			r.q, r.self = soft.of(from + i)
		case l.targets.Teacher != nil:
			r.soft, r.q = &plainSoft, teacher.Row(i)
			r.self = distribution(r.q, r.t)
		}
		if chosen != nil && r.target >= 0 {
			chosen[i].choose(l.targets.Selector, from+i, r.p, r.target)
		}
		r.run(attached)
		if chosen != nil && r.target >= 0 {
			chosen[i].add(&r, l.targets.Selector.Weight)
		}
		l.outcome[from+i] = r.RowLoss
	})
	if !attached {
		return
	}
	if chosen != nil {
		l.targets.Selector.backward(t, from, chosen)
	}
	l.plusBackward(logits, from, to)
	if l.head.Scale != 0 || l.head.Cap != 0 {
		t.perRow(to-from, func(i int) { finishBackward(l.head, logits.Row(i), capped.Row(i)) })
	}
	in := l.record.head.in.Slice(from, to)
	if l.record.head.madeInput() {
		each(e.Pool(), to-from, func(_, i int) { src.Row(i, in.Row(i)) })
	}
	if w := t.params.Of(l.head.W); w != nil {
		t.products.AddTMul(in, [2]nn.Mat{w.GradMat(), logits})
	}
	if b := t.gradOf(l.head.Bias); b != nil {
		t.columnSums(b, logits)
	}
	if l.record.head.needsInput() {
		t.products.mul(l.record.din.Slice(from, to), t.transposed(l.head.W), logits)
	}
}

// plus adds the targets' product to the logits. If a gradient goes back through the head's cap, it
// returns the logits before the addition.
func (l *lossPass) plus(logits nn.Mat, from, to int, attached bool) (capped nn.Mat) {
	capped = logits
	if attached && l.head.Cap != 0 {
		capped = l.t.plain(logits.Rows, logits.Cols)
		l.t.copyRows(capped, logits)
	}
	if p := l.targets.Plus; p != nil {
		l.t.exec.Linear(nn.Source{X: p.X.Slice(from, to)}, nn.Proj{Linear: p.By, Dst: logits, To: logits})
	}
	return capped
}

// plusBackward takes the logits' gradient to the product that was added to them.
func (l *lossPass) plusBackward(logits nn.Mat, from, to int) {
	p, t := l.targets.Plus, l.t
	if p == nil {
		return
	}
	x := p.X.Slice(from, to)
	if w := t.params.Of(p.By.W); w != nil {
		t.products.AddTMul(x, [2]nn.Mat{w.GradMat(), logits})
	}
	if dx, ok := Grad(x); ok {
		d := t.plain(x.Rows, x.Cols)
		t.products.mul(d, t.transposed(p.By.W), logits)
		t.add(dx, d)
	}
}
