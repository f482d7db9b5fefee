package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/train/data"
)

// dealer deals rows of text by number.
type dealer interface {
	Row(n uint64, dst []int32)
	Fingerprint() string
}

// deal is texts of one length, and where anchors may lie in them.
type deal struct {
	dealer
	length, first int
}

// headLearner is a block head as a learner.
type headLearner struct {
	r      *HeadRecipe
	pool   *par.Pool
	head   *BlockHead
	source string // fingerprint of the target
	short  deal
	long   deal // without a dealer: none
	held   []heldText

	texts   [][]int32 // of a step
	anchors [][]int
}

// newHeadLearner opens the job's target and makes the texts that are not there yet.
func newHeadLearner(ctx context.Context, j *Job, r *HeadRecipe, shape Shape, mask int32, text *corpus) (*headLearner, error) {
	from := filepath.Join(j.Dir, "target")
	l := &headLearner{r: r}
	var err error
	if l.source, err = hashFile(filepath.Join(from, "hf", "model.safetensors")); err != nil {
		return nil, err
	}
	if err := l.read(ctx, j, filepath.Join(from, "model-f32.gguf"), text); err != nil {
		return nil, err
	}
	l.pool = par.New(j.Threads)
	kind := gemm.F32
	if r.Precision == "bf16" {
		kind = gemm.BF16
	}
	target, err := NewNetwork(shape, l.pool, kind)
	if err == nil {
		err = target.Load(filepath.Join(from, "hf"))
	}
	if err == nil {
		l.head, err = NewBlockHead(r.config(shape, mask), target, l.pool, kind)
	}
	if err != nil {
		l.pool.Close()
		return nil, err
	}
	l.head.Init(r.Seed)
	if len(r.From) > 0 {
		if err := l.head.warm(r.From, l.examples()); err != nil {
			l.pool.Close()
			return nil, fmt.Errorf("the head's beginning: %w", err)
		}
	}
	return l, nil
}

// examples are some texts that the head will read.
func (l *headLearner) examples() (texts [][]int32) {
	for i := range 16 {
		texts = append(texts, make([]int32, l.short.length))
		l.short.Row(uint64(i), texts[i])
	}
	return texts
}

func hashFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}

// read gets the texts: the target's own, or the corpus; and held-out text of the target's for the measures.
func (l *headLearner) read(ctx context.Context, j *Job, target string, text *corpus) error {
	m, err := model.Open(target, model.Options{Threads: j.Threads})
	if err != nil {
		return err
	}
	defer m.Close()
	r, dir := l.r, filepath.Join(j.Dir, "jet", "generated")
	for _, s := range text.valid {
		alone := *s
		alone.Weight = 1
		tokens, err := r.Held.tokens(ctx, j, m, filepath.Join(dir, "heldout", s.Name), []*data.Set{&alone})
		if err != nil {
			return err
		}
		l.held = append(l.held, heldText{s.Name, tokens, r.Held.Length, r.Held.Prompt})
	}
	for i, g := range []Generated{r.Short, r.Long} {
		if g.Files == 0 {
			continue
		}
		d := deal{length: g.Length, first: 1}
		if r.Text == "corpus" {
			d.dealer, err = data.NewMix(text.train, g.Length-1, r.Seed+uint64(i)) // a mix adds a token to each row
		} else {
			var tokens []int32
			if tokens, err = g.tokens(ctx, j, m, filepath.Join(dir, []string{"short", "long"}[i]), text.train); err == nil {
				d.dealer, err = data.NewRows(tokens, g.Length, r.Seed+uint64(i))
			}
			d.first = g.Prompt - 1 // the token after the anchor is the first that the target said
		}
		if err != nil {
			return err
		}
		if i == 0 {
			l.short = d
		} else {
			l.long = d
		}
	}
	return nil
}

// Params, Pack and the rest make it a Learner.
func (l *headLearner) Params() *nn.Params { return l.head.Params }
func (l *headLearner) Pack()              { l.head.Pack() }

// Fingerprint is of recipe, target and texts.
func (l *headLearner) Fingerprint() string {
	parts := []string{l.source, l.short.Fingerprint()}
	if l.long.dealer != nil {
		parts = append(parts, l.long.Fingerprint())
	}
	return fingerprint(l.r, parts...)
}

// Work counts the target's pass and distributions, the context's products and the blocks.
func (l *headLearner) Work() (tokens int, operations float64) {
	c, t := l.head.Config(), &l.head.target.Shape
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	layer := c.Hidden*(q+2*kv) + q*c.Hidden + 3*c.Hidden*c.FFN
	context := len(c.Taps)*c.Hidden*c.Hidden + c.Layers*c.Hidden*2*kv
	blocks := float64(l.r.Anchors*c.Block) / float64(l.short.length) // block rows per token of text
	operations = t.operations(l.short.length)/3 + 6*float64(context) + blocks*(6*float64(c.Layers*layer)+4*float64(c.Vocab*c.Hidden))
	return l.r.Rows * l.short.length, operations
}

// phase is what a step's texts are, how many, and the number of the first of them. Every LongEvery-th step takes long ones.
func (l *headLearner) phase(step int) (d *deal, first, rows int) {
	if l.long.dealer == nil {
		return &l.short, step * l.r.Rows, l.r.Rows
	}
	every := l.r.LongEvery
	if step%every == every-1 {
		return &l.long, step / every * (l.r.Rows / 2), l.r.Rows / 2
	}
	return &l.short, (step - step/every) * l.r.Rows, l.r.Rows
}

// Gradient is that of a step's texts.
func (l *headLearner) Gradient(step int) (nn.Loss, error) {
	r, o := l.r, l.r.objective()
	d, first, rows := l.phase(step)
	block, anchors := r.Block, r.Anchors
	if float64(step) < r.ShortUntil*float64(r.Steps) {
		block, anchors = r.ShortBlock, anchors*r.Block/r.ShortBlock // as many rows
	}
	l.anchors = l.anchors[:0]
	weight := 0.0
	for i := range rows {
		number := first + i
		if i == len(l.texts) {
			l.texts = append(l.texts, nil)
		}
		if len(l.texts[i]) != d.length {
			l.texts[i] = make([]int32, d.length)
		}
		d.Row(uint64(number), l.texts[i])
		l.anchors = append(l.anchors, drawAnchors(r.Seed<<32+uint64(d.length), uint64(number), l.texts[i], d.first, d.length-2, block, anchors, r.Circles))
		weight += o.total(l.anchors[i], block, d.length)
	}
	var total nn.Loss
	for at := 0; at < rows; at += r.MicroRows {
		part, err := l.head.gradient(l.texts[at:at+r.MicroRows], l.anchors[at:at+r.MicroRows], block, o, float32(1/weight))
		if err != nil {
			return nn.Loss{}, err
		}
		total.Add(part)
	}
	return total, nil
}
