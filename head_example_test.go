package grove_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// Part 1: the files.

// offsets is the shape of a head that reads the target's last layer. Its k-th matrix turns the
// state of a token into one for the token k places later. The target's norm and output matrix make
// logits of it.
type offsets struct {
	headfile.GGUFOnly
	headfile.Base     // with the target's numbers; the head has no layers of that kind
	Ahead         int // matrices
}

var offsetsKind = headfile.Kind{
	Name: "offsets head", Drafters: []string{"offsets"}, Archs: []string{"offsets"}, Whole: []string{"offsets"},
	Examples: []string{"offsets"}, New: func() headfile.Shape { return new(offsets) },
}

func init() { headfile.Register(&offsetsKind) }

func (*offsets) Kind() *headfile.Kind    { return &offsetsKind }
func (*offsets) FileArch() string        { return "offsets" }
func (c *offsets) Keys(k *headfile.Keys) { k.Int(".ahead", &c.Ahead); k.Taps(&c.Base) }
func (c *offsets) Validate() error {
	if c.Ahead < 1 || c.Ahead > 16 {
		return fmt.Errorf("%d tokens ahead: want 1 to 16", c.Ahead)
	}
	return headfile.CheckTaps(c.Taps, c.TargetLayers)
}
func (*offsets) DefaultTaps(layers int) []int           { return []int{layers} }
func (c *offsets) Describe(bool) string                 { return fmt.Sprintf("offsets head: %d tokens ahead", c.Ahead) }
func (c *offsets) Draw(rng *rand.Rand, _ string, _ int) { c.Arch, c.Ahead = "llama", 1+rng.IntN(4) }
func (c *offsets) Parts() headfile.Parts                { return (&offsetsHead{offsets: *c}).parts() }

// offsetsHead is a head with its weights, those of a file or those in training.
type offsetsHead struct {
	offsets
	maps   []nn.Linear
	target *model.Network
}

// parts names each tensor once: for files, for loading and for training.
func (h *offsetsHead) parts() (list headfile.Parts) {
	h.maps = make([]nn.Linear, h.Ahead)
	for k := range h.maps {
		list = append(list, headfile.Linear(fmt.Sprintf("offset.%d", k), &h.maps[k], h.Hidden, h.Hidden, false))
	}
	return list
}

func newOffsetsHead(c offsets, w model.Weights, target *model.Network) (*offsetsHead, error) {
	h := &offsetsHead{offsets: c, target: target}
	return h, h.parts().Load(w)
}

// state computes the k-th states of rows of the target, and logits makes logits of them.
func (h *offsetsHead) state(e *nn.Exec, k int, x, y nn.Mat) {
	e.Linear(nn.Source{X: x}, nn.Proj{Linear: &h.maps[k], Dst: y})
}

func (h *offsetsHead) logits(e *nn.Exec, y, logits nn.Mat) {
	e.Linear(nn.Source{X: y, Norm: &h.target.Norm}, nn.Proj{Linear: &h.target.Head, Dst: logits})
}

// Part 2: the drafter.

type offsetsDrafter struct {
	draft.Base
	head      *offsetsHead
	exec      *nn.Exec
	y, logits nn.Mat
}

// offsetsState is the target's row of the last committed token.
type offsetsState struct {
	sampler  *sample.Sampler
	row      nn.Mat
	position int // of the next token
	known    bool
}

func (*offsetsState) Close() {}

func (d *offsetsDrafter) Taps() []int { return d.head.Taps }

func (d *offsetsDrafter) Begin(o draft.Options) (draft.State, error) {
	sampler, err := sample.New(o.Ranking(), d.head.Vocab)
	return &offsetsState{sampler: sampler, row: nn.NewMat(1, d.head.Hidden)}, err
}

// Resume asks for the last row of a cached prefix again: the head reads it.
func (d *offsetsDrafter) Resume(_ draft.State, n int, _ draft.State, _ int) int { return max(n-1, 0) }

func (d *offsetsDrafter) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s, last := r.State.(*offsetsState), len(r.Tokens)-1
		tap := r.Tap(0, last)
		s.known = tap != nil
		copy(s.row.Data, tap)
		s.position += len(r.Tokens)
	}
	return nil
}

// Propose appends a chain: the most probable token of each offset, with the noise that the target's choice will meet.
func (d *offsetsDrafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	proposals := make([]draft.Proposal, len(requests))
	for i, r := range requests {
		s, node := r.State.(*offsetsState), 0
		if !s.known || r.Guide != nil && !r.Guide.Deeper(0, 1) {
			continue
		}
		proposals[i].Levels = 1
		for k := 0; k < min(d.head.Ahead, r.Depth, r.Budget-1); k++ {
			d.head.state(d.exec, k, s.row, d.y)
			d.head.logits(d.exec, d.y, d.logits)
			for _, c := range s.sampler.Top(make([]sample.Candidate, 0, 1), d.logits.Row(0), s.position+1+k, nil) {
				node = r.Tree.Append(node, c.Token, c.LogProb)
			}
		}
	}
	return proposals, ctx.Err()
}

func init() {
	registry.Register(registry.Family{
		Name: "offsets", Help: "an offsets head: a chain in one pass", Needs: "an offsets head", Test: true,
		New: func(options string, _ registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			file, err := headfile.Find(target, &offsetsKind, "offsets", func(headfile.Shape) bool { return true })
			if err != nil {
				return nil, err
			}
			h, err := headfile.Load(file, &offsetsKind, target,
				func(c offsets, w model.Weights, _ []int32, m *model.Network) (*offsetsHead, error) {
					return newOffsetsHead(c, w, m)
				})
			if err != nil {
				return nil, err
			}
			d := &offsetsDrafter{head: h, exec: nn.NewExec(target.Model.Pool())}
			d.y, d.logits = nn.NewMat(1, h.Hidden), nn.NewMat(1, h.Vocab)
			return d, option.Parse(options, &struct{}{})
		},
	})
}

// Part 3: the training.

// trainOffsets writes a head that has learned from a text what its tokens are 2 places and more after each.
func trainOffsets(ctx context.Context, m *model.Model, text []int32, ahead, steps int, path string) error {
	c := offsets{Ahead: ahead}
	c.Config, c.Taps = m.Config, []int{m.Config.Layers}
	c.TargetLayers = m.Config.Layers
	c.Arch, c.Layers = "llama", 1
	params := autograd.NewParams(gemm.F32)
	h, err := newOffsetsHead(c, train.Trained{Params: params}, &m.Network)
	if err != nil {
		return err
	}
	for _, p := range params.All() { // each matrix begins as the identity: as the token that comes next
		for i := range p.Rows {
			p.Data[i*p.Cols+i] = 1
		}
	}
	cache := m.NewCache()
	pass := m.NewPass()
	chain := tree.Chain(text)
	defer cache.Free()
	if err := pass.Run(ctx, []model.Rows{{Cache: cache, Tree: chain}}, c.Taps); err != nil {
		return err
	}
	x := nn.NewMat(len(text), c.Hidden)
	for i := range text {
		copy(x.Row(i), pass.Tap(0, 0, i))
	}
	exec := nn.NewExec(m.Pool())
	tape := autograd.NewTape(exec, params)
	adam := autograd.AdamW{Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-10}
	moments := make([][2][]float32, ahead)
	for step := 1; step <= steps; step++ {
		params.Pack(tape.Products())
		params.ZeroGrad()
		tape.Reset()
		for k := range ahead {
			rows := len(text) - 2 - k
			y := exec.Mat(nil, rows, c.Hidden)
			h.state(exec, k, x.Slice(0, rows), y)
			tape.CrossEntropy(nn.Source{X: y, Norm: &m.Norm}, &m.Head, autograd.Targets{Token: text[2+k:]}, 1/float32(rows))
		}
		tape.Backward()
		for i, p := range params.All() {
			if step == 1 {
				moments[i] = [2][]float32{make([]float32, len(p.Data)), make([]float32, len(p.Data))}
			}
			adam.Step(p, moments[i][0], moments[i][1], step, 1, 1)
		}
	}
	var weights []tensor.Tensor
	for _, p := range params.All() {
		w, err := tensor.FromFloat32s(p.Name, tensor.F32, p.Shape(), p.Data)
		if err != nil {
			return err
		}
		weights = append(weights, w)
	}
	return headfile.WriteGGUF(path, "offsets", &c, weights, nil, nil, tensor.F32)
}

// The end of the drafter with a head.

// A head of a new kind is trained, written, opened with its target and drafts. The text is that of plain decoding.
func Example_head() {
	ctx := context.Background()
	open := func(heads ...string) *grove.Model {
		m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Heads: heads})
		if err != nil {
			log.Fatal(err)
		}
		return m
	}
	generate := func(m *grove.Model, prompt, drafter string) *grove.Result {
		r, err := grove.Collect(m.Generate(ctx, prompt, grove.Request{MaxTokens: 160, Drafter: drafter, Uncontrolled: true}))
		if err != nil {
			log.Fatal(err)
		}
		return r
	}
	m := open()
	defer m.Close()
	var text []int32
	for _, prompt := range []string{"func Write(", "package strings\n"} {
		text = append(text, generate(m, prompt, "plain").Tokens...)
	}
	dir, err := os.MkdirTemp("", "offsets")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "offsets.gguf")
	if err := trainOffsets(ctx, inside.Target(m).Model, text, 2, 6, path); err != nil {
		log.Fatal(err)
	}
	with := open(path)
	defer with.Close()
	plain, drafted := generate(m, "func main() {", "plain"), generate(with, "func main() {", "offsets")
	fmt.Println("same text:", plain.Text == drafted.Text)
	fmt.Println("fewer passes:", drafted.Stats.Rounds < plain.Stats.Rounds*9/10)
	// Output:
	// same text: true
	// fewer passes: true
}

// The functions that docs/write-a-drafter.md names in the table of its head are those above.
func TestWriteAHead(t *testing.T) {
	page, err := os.ReadFile("docs/write-a-drafter.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## With a head\n")
	functions := listFunctions(t, "head_example_test.go")
	rows := regexp.MustCompile(`(?m)^\| \w* ?\| (`+"`"+`[^|]+) \|`).FindAllStringSubmatch(section, -1)
	if len(rows) < 8 {
		t.Fatalf("%d rows of functions: want 8 and more", len(rows))
	}
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if !functions[name[1]] {
				t.Errorf("docs/write-a-drafter.md: head_example_test.go has no function %s", name[1])
			}
		}
	}
}
