package specblock

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/sample"
)

// tinySpecBlock returns a recipe for traintest's tiny target.
func tinySpecBlock(steps int) Recipe {
	return Recipe{
		Block: 3, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32, RankWidth: 32, RopeBase: 10000,
		Taps: []int{0, 1, 2}, Shift: true, Broadcast: true,
		Basis: traintest.Basis(steps), Anchors: 5, Rounds: 2, Settle: 0.3, Decay: 0.8, ValidPrefix: true,
		Ranks: RankFit{Texts: 6, Apart: 2, Rows: 64, Course: train.Course{Steps: 40,
			Optimizer: newRankFit().Optimizer}},
	}
}

// A head learns the target's predictions. An interrupted run ends with the weights of an
// uninterrupted one, also on another number of threads. The exported file opens as a head of the
// target, and the measurements are written to a file.
func TestSpecBlock(t *testing.T) {
	j := traintest.JobWithTarget(t)
	r := tinySpecBlock(30)
	alone, first, last := traintest.Watched(j, func(p train.Progress) bool { return p.Steps == r.Steps })
	var notes []string
	alone.Note = func(s string) { notes = append(notes, s) }
	if err := alone.TrainHead(context.Background(), "specblock", &r); err != nil {
		t.Fatal(err)
	}
	if last.Step != r.Steps || last.Loss > 0.8*first.Loss || last.Validation["held"] == 0 ||
		last.Figures["held chain"] < 1.2 ||
		last.Figures["held place 01"] < 0.2 || last.Figures["held rank F1"] == 0 {
		t.Errorf("loss %.3f at first, %.3f at step %d; held out %v %v", first.Loss, last.Loss, last.Step,
			last.Validation, last.Figures)
	}
	if table := notes[len(notes)-1]; !strings.Contains(table, "a second block after row") ||
		!strings.Contains(table, "recall") {
		t.Errorf("the last note is %q, want the tables", table)
	}

	traintest.Interrupted(t, j, "specblock", []int{17, 35}, traintest.WholeFile,
		[]string{"hf/model.safetensors", "measures.json"}, func(ctx context.Context, j train.Job, name string) error {
			return j.TrainHead(ctx, name, &r)
		})
	ranksComeAfter(t, j, r)
	other := r
	other.ValidPrefix = false
	if err := j.TrainHead(context.Background(), "specblock", &other); err == nil {
		t.Error("another recipe goes on with its checkpoint")
	}

	m := j.Target
	for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
		h := traintest.Opened(t, &j, "specblock", file, m, specblock.Open)
		if want := r.config(&m.Config); h.Block != want.Block || !slices.Equal(h.Taps, want.Taps) ||
			h.RankWidth != want.RankWidth || !h.Shift || !h.Broadcast || h.TargetLayers != m.Config.Layers ||
			h.RankOffset == want.RankOffset {
			t.Errorf("%s: the head opens as %+v", file, h.Config)
		}
	}
	specBlockServes(t, &j, &r, m)
	specBlockVocabulary(t, j, m, false)
	specBlockVocabulary(t, j, m, true)
	specBlockWarm(t, &j)
	specBlockSlots(t, &j)
}

// specBlockServes: a head drafts as it is measured. A decoding loop with chains takes exactly the
// rounds that the head's rows in training predict.
func specBlockServes(t *testing.T, j *train.Job, r *Recipe, m *model.Model) {
	served, err := specblock.Open(registry.Head{Name: filepath.Join(j.Dir, "specblock", "model-f32.gguf")},
		registry.Target{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	chains := specblock.Options{Blocks: r.Rounds, Widths: "1/1/1/1", Nodes: 60}
	d, err := specblock.New(chains, served, drafttest.As(m))
	if err != nil {
		t.Fatal(err)
	}

	text, err := j.OpenCorpus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	l := traintest.Learner[*learner](t, j, r, text)
	done := train.Loop{Course: r.Course, Dir: filepath.Join(j.Dir, "specblock"), Pool: j.Target.Pool()}
	if err := done.Run(context.Background(), l); err != nil { // only loads the weights
		t.Fatal(err)
	}
	h := l.head
	h.Tape.Detach()

	var prompts [][]int32
	for _, text := range l.Examples() {
		prompts = append(prompts, text[:6])
	}
	out, stats := drafttest.Generate(t, m, d, speculate.Options{Budget: 60, Uncontrolled: true}, sample.Params{},
		prompts)
	rounds := 0
	for i, prompt := range prompts {
		text := slices.Concat(prompt, out[i])
		end := len(text)
		text = append(text, make([]int32, r.Rounds*r.Block)...) // the tokens after the text do not matter
		var starts []start
		for at := len(prompt); at < end; at++ {
			starts = append(starts, start{at, slices.Repeat([]float64{.99}, r.Rounds-1)})
		}
		if err := h.forward([][]int32{text}, [][]start{starts}, r.Rounds, false); err != nil {
			t.Fatal(err)
		}
		right := make([]int, len(starts))
		for b, round := range h.rounds[:r.Rounds] {
			for i, s := range round.said {
				if at := round.blocks[i/r.Block].start; right[at] == b*r.Block+i%r.Block && s.right {
					right[at]++
				}
			}
		}
		for n := 0; n < end-1-len(prompt); n += right[n] + 1 {
			rounds++
		}
	}
	if stats.Rounds != rounds || stats.Tau() < 1.2 {
		t.Errorf("%d rounds with τ %.3f, foretold %d", stats.Rounds, stats.Tau(), rounds)
	}
}

// specBlockWarm: a head that starts as the target predicts the next token before it has learned
// anything, and continues from its own predictions; a head that starts with random weights does not.
func specBlockWarm(t *testing.T, j *train.Job) {
	text, err := j.OpenCorpus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	right := func(from []int) (first, second float64) {
		r := tinySpecBlock(1)
		r.From = from
		r.FFN = 64
		r.Taps = []int{1, 2}
		l := traintest.Learner[*learner](t, j, &r, text)
		m, err := l.head.measure(&l.Sources[0], r.Rounds, train.HeldTexts, train.HeldTokens, 1)
		if err != nil {
			t.Fatal(err)
		}
		return m.Places[0].Share(), m.After[0][0].Share()
	}
	warm1, warm2 := right([]int{0, 1})
	if cold, _ := right(nil); warm1 < 0.5 || warm2 < 0.5 || cold > 0.2 {
		t.Errorf("first rows are right %.2f of the time for a head that begins as its target, %.2f after a first row; %.2f for a random one", warm1, warm2, cold)
	}
}

// specBlockSlots: a slot query's contribution to the first layer's input has the requested size,
// relative to the input of the target's layer. Layer 0's input is the embedding of the next token.
func specBlockSlots(t *testing.T, j *train.Job) {
	text, err := j.OpenCorpus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	for _, want := range []float64{0.5, 2} {
		r := tinySpecBlock(1)
		r.From = []int{0, 1}
		r.FFN = 64
		r.Slots = want
		l := traintest.Learner[*learner](t, j, &r, text)
		n, row := l.head.net, make([]float32, l.head.net.Hidden)
		var embedded []float32
		for _, tokens := range l.Examples() {
			for _, token := range tokens[1:] {
				n.Embed.Row(row, int(token))
				embedded = append(embedded, row...)
			}
		}
		query, slots := nn.NewMat(n.Block, n.Hidden), nn.NewMat(n.Block, n.Hidden)
		for slot := range n.Block {
			n.Queries.Row(query.Row(slot), slot)
		}
		l.head.Exec.Linear(nn.Source{X: query, Norm: &n.QueryNorm}, nn.Proj{Linear: &n.FuseQuery, Dst: slots})
		if got := rootMeanSquare(slots.Data) / rootMeanSquare(embedded); math.Abs(got/want-1) > 0.01 {
			t.Errorf("the queries' part has %.3f times the size of the target's input, want %g", got, want)
		}
	}
}

func rootMeanSquare(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(x)))
}

// specBlockVocabulary: a head whose output covers part of the vocabulary, with the target's rows or its
// own, learns with the paper's mean at each place, and opens with its tokens. It drafts as it was trained.
func specBlockVocabulary(t *testing.T, j train.Job, m *model.Model, own bool) {
	r := tinySpecBlock(20)
	r.OwnOutput = own
	name := fmt.Sprint("part-", own)
	r.DraftVocab = 96
	r.PlaceMeans = true
	r.Ranks.Texts = 0
	alone, first, last := traintest.Watched(j, traintest.EveryStep)
	if err := alone.TrainHead(context.Background(), name, &r); err != nil {
		t.Fatal(err)
	}
	if last.Loss > 0.9*first.Loss || last.Figures["held chain"] <= 1 {
		t.Errorf("loss %.3f at first, %.3f at the end; held out %v", first.Loss, last.Loss, last.Figures)
	}
	for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
		h := traintest.Opened(t, &j, name, file, m, specblock.Open)
		if h.DraftVocab != 96 || len(h.Tokens) != 96 || h.OwnHead != (own || file != "model-q8_0.gguf") {
			t.Errorf("%s: the head opens with %d tokens of %d, its own output %v", file, len(h.Tokens), h.DraftVocab,
				h.OwnHead)
		}
	}
}
