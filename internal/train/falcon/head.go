// Package falcon trains Falcon heads.
package falcon

import (
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tree"
)

// Head is a Falcon head in training over a frozen target, by the glancing distillation of its
// authors' code (Bestpay-inc/Falcon).
//
// Every token of a text except the first has a row: its embedding, and the feature of the previous
// token. Row i learns the feature of place i+k and the target's prediction there. A pass without
// gradient counts the rows whose likeliest token is wrong. A share of that number of rows, drawn at
// random from the first rows of blocks, glance: in the next pass they read the token and feature
// that they have to predict instead of their own, and the other rows of the block learn from these.
type Head struct {
	train.OverTarget

	net    *falcon.Network
	forest nn.Forest
	trees  []*tree.Tree // one per text
	bufs   falcon.Buffers

	features, input, states, asked, wanted nn.Buffer

	soft autograd.Soft
}

// NewHead returns a head of zeros over a target; its matrix products run as kind (F32 or BF16).
func NewHead(c falcon.Config, target *model.Model, kind gemm.Type) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind)}
	var err error
	if h.net, err = falcon.NewNetwork(c, train.Trained{Params: h.Params}, nil, &target.Network); err != nil {
		return nil, err
	}
	h.Made(h.net.Pages)
	return h, headfile.Fits(&c, &target.Config)
}

// Config is the head's shape.
func (h *Head) Config() *falcon.Config { return &h.net.Config }

// objective is what the rows of a head learn; see Recipe.
type objective struct{ states, logits, soft, temperature float32 }

// texts are some texts of one length, with the target's results on them.
type texts struct {
	list     [][]int32
	places   [][]int // of each text, the places whose features are learned: from place k on, before the last
	noise    func(g nn.Mat)
	first    int    // lowest of all places
	features nn.Mat // of all tokens
}

// read runs the target over the texts.
func (h *Head) read(t *texts, temperature float32) {
	last := h.Target.Read(t.list)
	t.features = h.features.Mat(last.Rows, h.net.Hidden)
	h.Tape.Detach() // features are inputs: they need no gradient
	h.net.Features(h.Exec, h.Target.Taps, t.features)
	t.first = len(t.list[0])
	for _, places := range t.places {
		t.first = min(t.first, places[0])
	}
	h.soft.Temperature = temperature
	h.Target.Distributions(&h.soft, last, len(t.list), t.first, len(t.list[0])-1, &h.net.Head)
}

// run computes the rows of all texts, length-1 per text. Row i reads token i+1 and feature i or, if
// it is in glanced, token i+1+k and feature i+k.
func (h *Head) run(t *texts, glanced map[int]bool) nn.Mat {
	length, k := len(t.list[0]), h.net.Block
	h.forest.Reset()
	var tokens, of, before []int32
	for i, text := range t.list {
		if i == len(h.trees) {
			h.trees = append(h.trees, new(tree.Tree))
		}
		for row := range length - 1 {
			at := row
			if glanced[len(of)] {
				at += k
			}
			before = append(before, int32(max(len(of)-1, -1)))
			if row == 0 {
				before[len(of)] = -1
			}
			tokens, of = append(tokens, text[at+1]), append(of, int32(i*length+at))
		}
		h.net.LayOut(h.trees[i], tokens[i*(length-1):], false)
		h.forest.Add(h.Cache(i), h.trees[i], 0)
		h.Cache(i).Reserve(0, length-1)
	}
	var o *falcon.Order
	if h.net.Recurrent {
		o = new(falcon.Order) // new, since the tape keeps a reference to it
		o.Set(before, make([][]float32, 1))
	}
	g := h.Exec.Mat(&h.input, len(of), h.net.Hidden)
	h.Exec.Gather(t.features, of, g)
	if t.noise != nil {
		t.noise(g)
	}
	x := h.Exec.Mat(&h.states, len(of), h.net.Hidden)
	h.net.Run(h.Exec, &h.forest, tokens, g, o, x, &h.bufs)
	return x
}

// rowsOf lists the rows that learn and are at a slot of their block; -1 means any slot.
func (h *Head) rowsOf(t *texts, slot int) (rows []int32) {
	k := h.net.Block
	for i, places := range t.places {
		for _, place := range places {
			if row := place - k; row >= 0 && (slot < 0 || row%k == slot) {
				rows = append(rows, int32(i*(len(t.list[0])-1)+row))
			}
		}
	}
	return rows
}

// loss is the loss of some rows of x, each scaled by scale. The right tokens are those of the texts
// or, with likeliest, the target's likeliest.
func (h *Head) loss(t *texts, x nn.Mat, rows []int32, o objective, scale float32, likeliest bool) autograd.Loss {
	length, k := len(t.list[0]), h.net.Block
	targets := autograd.Targets{Soft: &h.soft, Share: o.soft}
	h.soft.Row = h.soft.Row[:0]
	var states []int32
	for _, row := range rows {
		text, place := int(row)/(length-1), int(row)%(length-1)+k
		of := text*(length-1-t.first) + place - t.first
		h.soft.Row, states = append(h.soft.Row, int32(of)), append(states, int32(text*length+place))
		right := t.list[text][place+1]
		if likeliest {
			right = h.soft.Best(of)
		}
		targets.Token = append(targets.Token, right)
	}
	y := h.Exec.Mat(&h.asked, len(rows), h.net.Hidden)
	h.Exec.Gather(x, rows, y)
	loss := h.Tape.CrossEntropy(nn.Source{X: y}, &h.net.Head, targets, scale*o.logits)
	loss.Sum *= float64(o.logits)
	if o.states > 0 {
		want := h.wanted.Mat(len(rows), h.net.Hidden)
		for i, of := range states {
			copy(want.Row(i), t.features.Row(int(of)))
		}
		loss.Sum += float64(o.states) * h.Tape.SmoothL1(y, want, scale*o.states).Sum
	}
	loss.Sum *= float64(scale)
	loss.Hard *= float64(scale)
	loss.Weight *= float64(scale)
	return loss
}

// One block in counted is looked at to estimate the number of wrong rows.
const counted = 4

// gradient adds the texts' gradient to that of the parameters, and returns the loss. share is the
// number of glancing rows over the number of wrong ones.
func (h *Head) gradient(t *texts, o objective, share float64, scale float32, r *rand.Rand) autograd.Loss {
	h.Tape.Reset()
	h.read(t, o.temperature)
	glanced := h.glance(t, share, r)
	h.Tape.Attach()
	loss := h.loss(t, h.run(t, glanced), h.rowsOf(t, -1), o, scale, false)
	h.Tape.Backward()
	return loss
}

// sampled returns the rows in every counted-th block of k, for texts of some length.
func sampled(all []int32, length, k int) (rows []int32) {
	seen, last := 0, -1
	for _, row := range all {
		if block := int(row)/length*length + int(row)%length/k; block != last {
			seen++
			last = block
		}
		if seen%counted == 1 {
			rows = append(rows, row)
		}
	}
	return rows
}

// glance draws the rows that read what they have to predict: from the learning rows that begin a block,
// share times the number of wrong rows. In blocks of more than two rows, runs of rows at the beginning
// glance, never whole blocks. In blocks of one row none does: no other row would learn from it.
func (h *Head) glance(t *texts, share float64, r *rand.Rand) map[int]bool {
	k, all := h.net.Block, h.rowsOf(t, -1)
	if share == 0 || k == 1 {
		return nil
	}
	l := h.loss(t, h.run(t, nil), sampled(all, len(t.list[0])-1, k), objective{logits: 1}, 1, true)
	starts := h.rowsOf(t, 0)
	n := int(share * float64(l.Rows-l.Correct) * counted)
	if k > 2 {
		n /= k
	}
	r.Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
	starts = starts[:min(n, len(starts))]
	glanced := map[int]bool{}
	for _, row := range starts {
		run := 1
		if k > 2 {
			run += r.IntN(k - 1)
		}
		for i := range run {
			if at := int(row) + i; at%(len(t.list[0])-1)+2*k+1 < len(t.list[0]) {
				glanced[at] = true
			}
		}
	}
	return glanced
}
