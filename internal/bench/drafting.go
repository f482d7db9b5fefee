// What drafting with a block head costs, by depth and context (paper 003, appendix G and Table 12).

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// DraftingOptions say what to time.
type DraftingOptions struct {
	Target           draft.Target // its heads are timed
	Title, ModelName string
	Contexts, Depths []int // empty: the paper's, as far as the target's context reaches
	Rounds           int   // 0: 9

	Progress func(done, total int) // called after each round; may be nil
}

// DraftingReport has the paper's table for each head: the cost of a drafted token, as a share of a pass of the target over the same
// number of candidates.
type DraftingReport struct {
	Setting
	Contexts []int          `json:"contexts"` // committed tokens
	Depths   []int          `json:"depths"`   // tokens that a block proposes
	Rounds   int            `json:"rounds"`
	Heads    []DraftingHead `json:"heads"`
}

// DraftingHead is one head's part.
type DraftingHead struct {
	Name   string           `json:"name"`
	Causal bool             `json:"causal"`
	Block  int              `json:"block"` // rows it was trained with; depths from there on are timed all the same
	Cells  [][]DraftingCell `json:"cells"` // by context and depth
}

// DraftingCell is a block of so many tokens, and a pass of the target over so many candidates: medians of rounds.
type DraftingCell struct {
	DraftMS  float64 `json:"draft_ms"`
	VerifyMS float64 `json:"verify_ms"`
	Cost     float64 `json:"cost"` // c(γ, L): DraftMS over depth times VerifyMS; 0 where the context has no room
}

var (
	paperContexts = []int{128, 256, 512, 1024, 2048, 4096}
	paperDepths   = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
)

// Drafting times every head at every context and depth, and the target beside it, in turn, several times over.
func Drafting(ctx context.Context, o DraftingOptions) (*DraftingReport, error) {
	m := o.Target.Model
	if m == nil {
		return nil, fmt.Errorf("bench: there is no target")
	}
	if len(o.Depths) == 0 {
		o.Depths = paperDepths
	}
	if len(o.Contexts) == 0 {
		o.Contexts = paperContexts
		for len(o.Contexts) > 1 && o.Contexts[len(o.Contexts)-1] >= m.Context() {
			o.Contexts = o.Contexts[:len(o.Contexts)-1]
		}
	}
	if slices.Min(o.Depths) < 1 || slices.Min(o.Contexts) < 1 || slices.Max(o.Contexts) >= m.Context() {
		return nil, fmt.Errorf("bench: depths %v after contexts %v: want 1 or more, below the target's context of %d", o.Depths, o.Contexts, m.Context())
	}
	if o.Rounds == 0 {
		o.Rounds = 9
	}
	r := &DraftingReport{Setting: newSetting(m, o.Title, o.ModelName), Contexts: o.Contexts, Depths: o.Depths, Rounds: o.Rounds}
	var blocks []*timedBlock
	for _, h := range o.Target.Heads {
		head, err := jet.Open(h, o.Target)
		if errors.Is(err, headfile.ErrKind) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.Heads = append(r.Heads, DraftingHead{Name: head.Name, Causal: head.Config.Causal, Block: head.Config.Block})
		blocks = append(blocks, newTimedBlock(head.Network, m))
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("bench: the target was opened without a block head: name one with --head")
	}
	for c, context := range o.Contexts {
		room := slices.DeleteFunc(slices.Clone(o.Depths), func(d int) bool { return context+d >= m.Context() })
		if err := r.context(ctx, &o, c, room, blocks); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// context times the depths for which a context leaves room.
func (r *DraftingReport) context(ctx context.Context, o *DraftingOptions, c int, depths []int, blocks []*timedBlock) error {
	for i := range r.Heads {
		r.Heads[i].Cells = append(r.Heads[i].Cells, make([]DraftingCell, len(r.Depths)))
	}
	if len(depths) == 0 {
		return nil
	}
	verify, err := newPasses(ctx, o.Target.Model, r.Contexts[c], depths)
	if err != nil {
		return err
	}
	defer verify.cache.Free()
	for _, b := range blocks {
		b.read(r.Contexts[c])
		defer b.cache.Free()
		b.time(slices.Max(depths)) // grows the buffers
	}
	verified := make([][]time.Duration, len(depths))
	drafted := make([][][]time.Duration, len(blocks)) // by head and depth
	for i := range drafted {
		drafted[i] = make([][]time.Duration, len(depths))
	}
	for round := range o.Rounds {
		for d, depth := range depths {
			ts, err := verify.time(ctx, d)
			if err != nil {
				return err
			}
			verified[d] = append(verified[d], ts...)
			for i, b := range blocks {
				drafted[i][d] = append(drafted[i][d], b.time(depth)...)
			}
		}
		if o.Progress != nil {
			o.Progress(c*o.Rounds+round+1, len(r.Contexts)*o.Rounds)
		}
	}
	for d, depth := range depths {
		at := slices.Index(r.Depths, depth)
		v := 1e3 * median(verified[d]).Seconds()
		for i := range blocks {
			t := 1e3 * median(drafted[i][d]).Seconds()
			r.Heads[i].Cells[c][at] = DraftingCell{DraftMS: t, VerifyMS: v, Cost: t / (float64(depth) * v)}
		}
	}
	return nil
}

// timedBlock is a head at work: its block, and the logits of all rows but the anchor's.
type timedBlock struct {
	n      *jet.Network
	exec   *nn.Exec
	pages  nn.Pages
	cache  *nn.Cache
	forest nn.Forest
	block  tree.Tree
	bufs   jet.Buffers

	taps, x, logits nn.Buffer
}

func newTimedBlock(n *jet.Network, m *model.Model) *timedBlock {
	return &timedBlock{n: n, exec: nn.NewExec(m.Pool()), pages: n.Pages()}
}

// read fills the cache with a context, of taps that mean nothing: cost does not depend on them.
func (b *timedBlock) read(context int) {
	b.cache = b.pages.NewCache()
	taps := b.taps.Mat(context, len(b.n.Taps)*b.n.Hidden)
	for i := range taps.Data[:taps.Rows*taps.Cols] {
		taps.Data[i] = float32(i%17)/8 - 1
	}
	b.block.ResetChain(make([]int32, context))
	b.forest.Reset()
	b.forest.Add(b.cache, &b.block, 0)
	b.cache.Reserve(0, context)
	b.n.Context(b.exec, &b.forest, taps, &b.bufs)
	b.cache.CommitAll()
}

// time runs the block for a few milliseconds at least.
func (b *timedBlock) time(depth int) (ts []time.Duration) {
	const atLeast = 5 * time.Millisecond
	b.n.LayOut(&b.block, 0, depth+1)
	x, logits := b.x.Mat(depth+1, b.n.Hidden), b.logits.Mat(depth, b.n.Vocab)
	rows := x // all but the anchor's
	rows.Rows, rows.Data = depth, x.Data[x.Cols:]
	for total := time.Duration(0); total < atLeast; {
		start := time.Now()
		b.forest.Reset()
		b.forest.Add(b.cache, &b.block, 0)
		b.cache.Reserve(0, depth+1)
		b.n.Run(b.exec, &b.forest, b.block.Token, x, &b.bufs)
		b.exec.Linear(nn.Source{X: rows, Norm: &b.n.Norm}, nn.Proj{Linear: &b.n.Head, Dst: logits})
		b.cache.Reserve(0, 0)
		t := time.Since(start)
		ts, total = append(ts, t), total+t
	}
	return ts
}

func (h *DraftingHead) kind() string {
	if h.Causal {
		return jet.Causal
	}
	return jet.Bidirectional
}

// Markdown writes the report.
func (r *DraftingReport) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b, "What drafting costs")
	line(&b, "cost", "a block's time over depth × the target's time for as many candidates, in percent; medians of %d rounds", r.Rounds)
	for _, h := range r.Heads {
		fmt.Fprintf(&b, "\n## %s (%s)\n\nTrained with blocks of %d rows.\n\n", h.Name, h.kind(), h.Block)
		head := []string{"context"}
		for _, d := range r.Depths {
			head = append(head, fmt.Sprintf("depth %d", d))
		}
		writeRow(&b, head)
		writeRule(&b, len(head))
		for i, cells := range h.Cells {
			row := []string{fmt.Sprint(r.Contexts[i])}
			for _, c := range cells {
				text := "–"
				if c.Cost > 0 {
					text = fmt.Sprintf("%.3f", 100*c.Cost)
				}
				row = append(row, text)
			}
			writeRow(&b, row)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Save writes the report into a folder, with a figure for each head.
func (r *DraftingReport) Save(dir string) ([]string, error) {
	files, err := saveReport(dir, r, r.Markdown)
	if err != nil {
		return files, err
	}
	for n, h := range r.Heads {
		p := r.newChart(h.kind()+" head: cost of a drafted token", "depth", "share of a pass of the target, %")
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
		drawn := false
		for i, cells := range h.Cells {
			var xy plotter.XYs
			for d, c := range cells {
				if c.Cost > 0 {
					xy = append(xy, plotter.XY{X: float64(r.Depths[d]), Y: 100 * c.Cost})
				}
			}
			if len(xy) == 0 {
				continue
			}
			if err := p.line(i, fmt.Sprintf("context %d", r.Contexts[i]), xy); err != nil {
				return files, err
			}
			drawn = true
		}
		if !drawn {
			continue
		}
		more, err := p.save(dir, fmt.Sprintf("cost-%d-%s", n+1, h.kind()))
		if files = append(files, more...); err != nil {
			return files, err
		}
	}
	return files, nil
}
