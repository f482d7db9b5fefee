package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train/bpe"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tokenizer"
)

// Job is a folder in which the project's own models are made, one after another, and their sources.
// An interrupted stage resumes where it was; a finished one is not repeated.
//
//	DIR/tokenizer.gguf          Tokenizer
//	DIR/target/…                Target: checkpoints, metrics.jsonl, loss.png
//	DIR/target/model-f32.gguf, model-q8_0.gguf, hf/
//	DIR/draft/…                 Draft: the same, and the text the target generated
//	DIR/NAME/…                  the same for a head; DIR/generated has the target's text for all heads
//
// Heads may be made for any other model, which is then Target; Dir is then only for them.
type Job struct {
	Dir        string
	Sources    []data.Source // training text
	Validation []data.Source // text to measure on; nil: a part of the training text, which is then excluded from training
	Threads    int           // 0: GOMAXPROCS

	Target   *model.Model   // the model that heads learn from, as served; only stages of heads read it
	Features *Features      // where the target's rows of texts are kept for the next head; nil: nowhere
	Answers  []Conversation // the target's text (see Answer), which replaces the sources; nil: none
	Sparing  bool           // the target generates only as much text as a head's steps read
	// The target's GGUF file: exported heads take its tokenizer, for programs that need one, and
	// draft models everything except their layers; "": there is none.
	Vocabulary string

	// Verifier is the target's name in a folder for vLLM's speculators, as in headfile.Verifier;
	// empty: it is unknown, and no such folder is written.
	Verifier string

	SaveEvery time.Duration  // between checkpoints; 0: two minutes
	Report    func(Progress) // called after every step; may be nil
	Note      func(string)   // called when a stage begins; may be nil
	resumes   bool           // the head in training has a checkpoint
}

// StandardJob makes the models on the standard sources (package data) with weights as in these
// recipes: prose and arithmetic are far smaller than the library, and are read more often.
func StandardJob(dir, goroot, folder string) Job {
	j := Job{Dir: dir, Sources: data.Standard(goroot, folder), Validation: data.StandardValidation(goroot, folder)}
	for i := range j.Sources {
		s := &j.Sources[i]
		s.Weight = map[string]float64{"go": 0.66, "prose": 0.16, "gsm8k": 0.11, "gsm8k-chat": 0.07}[s.Name]
	}
	return j
}

func (j *Job) Notef(format string, args ...any) {
	if j.Note != nil {
		j.Note(fmt.Sprintf(format, args...))
	}
}

func (j *Job) tokenizerPath() string { return filepath.Join(j.Dir, "tokenizer.gguf") }

// TargetRecipe is the recipe of the target: 8.6 million parameters, 31 million tokens, about 75 minutes on four cores
// with VDPBF16PS.
func TargetRecipe() Recipe {
	return Recipe{
		Shape: Shape{Vocab: 16384, Hidden: 256, Layers: 6, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 704, Context: 2048,
			RopeBase: 10000, NormEps: 1e-6},
		Seed: 1, Precision: "bf16", Length: 256, Rows: 32, MicroRows: 16, Steps: 3800, LongFrom: 0.75, LongLength: 1024,
		Schedule: Plateau(0.02), Optimizer: DefaultOptimizer(), Clip: 1,
		ValidateEvery: 100, ValidateRows: 64,
	}
}

// DraftRecipe is the recipe of the draft model: 1.4 million parameters, most of them the head's, 25 million tokens.
func DraftRecipe() Recipe {
	r := TargetRecipe()
	r.Shape.Hidden = 64
	r.Shape.Layers = 4
	r.Shape.Heads = 2
	r.Shape.KVHeads = 1
	r.Shape.HeadDim = 32
	r.Shape.FFN = 384
	r.Seed, r.Steps = 2, 3000
	r.Distill = 0.8
	r.Generated = Generated{Files: 24, Texts: 256, Prompt: 32, Length: 256, Weight: 0.5}
	return r
}

// Tokenizer learns the vocabulary, DIR/tokenizer.gguf, from the sources.
func Tokenizer(ctx context.Context, j Job, o bpe.Options) error {
	if _, err := os.Stat(j.tokenizerPath()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return err
	}
	j.Notef("learning the vocabulary")
	counter, err := bpe.NewCounter(o)
	if err != nil {
		return err
	}
	for _, s := range j.Sources {
		docs, _, err := s.Documents()
		if err != nil {
			return err
		}
		texts := make([]string, 0, len(docs))
		for i := range docs {
			for _, p := range docs[i].Parts {
				if !p.Control {
					texts = append(texts, p.Text)
				}
			}
		}
		if err := counter.Add(texts, 1); err != nil {
			return err
		}
	}
	v, err := bpe.Train(ctx, counter, o)
	if err != nil {
		return err
	}
	return v.WriteGGUF(j.tokenizerPath())
}

// Corpus is a job's vocabulary, and its texts as tokens.
type Corpus struct {
	vocabulary   *gguf.File
	Tok          *tokenizer.Tokenizer
	train, valid []*data.Set
	card         string // a table that describes train
}

func (c *Corpus) Close() error {
	if c.vocabulary == nil {
		return nil
	}
	return c.vocabulary.Close()
}

// OpenCorpus reads and tokenises the sources for the job's target.
func (j *Job) OpenCorpus(ctx context.Context) (*Corpus, error) {
	c := &Corpus{Tok: j.Target.Tokenizer}
	if c.Tok == nil {
		return nil, fmt.Errorf("the target has no tokenizer: want a model with one, to read the training text")
	}
	if j.Vocabulary != "" {
		var err error
		if c.vocabulary, err = gguf.Open(j.Vocabulary); err != nil {
			return nil, err
		}
	}
	if err := j.readSources(ctx, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Open makes the vocabulary if it does not exist, and reads and tokenises the sources.
func (j *Job) Open(ctx context.Context, vocab int) (*Corpus, error) {
	if err := Tokenizer(ctx, *j, bpe.Options{Size: vocab, Threads: j.Threads}); err != nil {
		return nil, err
	}
	f, err := gguf.Open(j.tokenizerPath())
	if err != nil {
		return nil, err
	}
	c := &Corpus{vocabulary: f}
	if err := j.read(ctx, c, vocab); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

func (j *Job) read(ctx context.Context, c *Corpus, vocab int) (err error) {
	if c.Tok, err = tokenizer.FromGGUF(c.vocabulary); err != nil {
		return err
	}
	if n := c.Tok.VocabSize(); n != vocab {
		return fmt.Errorf("%s: %d tokens, the recipe's model has %d: train in another folder", j.tokenizerPath(), n, vocab)
	}
	return j.readSources(ctx, c)
}

// readSources reads the texts.
func (j *Job) readSources(ctx context.Context, c *Corpus) (err error) {
	var reports []data.Report
	if j.Answers != nil {
		c.train = []*data.Set{data.FromTokens("answers", TokensOf(j.Answers), c.Tok)}
	} else if c.train, reports, err = j.sets(ctx, c.Tok, j.Sources); err != nil {
		return err
	}
	if j.Validation != nil {
		c.valid, _, err = j.sets(ctx, c.Tok, j.Validation)
	} else {
		for i, s := range c.train {
			var held *data.Set
			c.train[i], held = s.HoldOut()
			c.valid = append(c.valid, held)
		}
	}
	if j.Answers != nil {
		c.card = describeConversations(j.Answers)
	} else {
		c.card = data.Card(j.Sources, c.train, reports)
	}
	return err
}

func (j *Job) sets(ctx context.Context, tok *tokenizer.Tokenizer, sources []data.Source) (sets []*data.Set,
	reports []data.Report, err error) {
	for _, s := range sources {
		set, report, err := data.Load(ctx, s, tok, data.LoadOptions{Cache: filepath.Join(j.Dir, "cache"), Threads: j.Threads})
		if err != nil {
			return nil, nil, err
		}
		sets, reports = append(sets, set), append(reports, report)
	}
	return sets, reports, nil
}

func (j *Job) config(stage string, r Recipe, valid []*data.Set) Config {
	return Config{Recipe: r, Dir: filepath.Join(j.Dir, stage), Threads: j.Threads, SaveEvery: j.SavesEvery(),
		Report: j.Report, Validation: valid}
}

func (j *Job) SavesEvery() time.Duration {
	if j.SaveEvery == 0 {
		return 2 * time.Minute
	}
	return j.SaveEvery
}

// TrainTarget trains the target, and first the vocabulary if it does not exist.
func TrainTarget(ctx context.Context, j Job, r Recipe) error {
	text, err := j.Open(ctx, r.Shape.Vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	j.Notef("training the target")
	c := j.config("target", r, text.valid)
	n, err := Run(ctx, c, text.train, nil)
	if err != nil {
		return err
	}
	return n.export(c.Dir, "grove target", text)
}

// TrainDraft trains the draft model by distilling the target: on the training text, and on text
// generated by the target itself, whose distributions are those that drafts will be judged by.
func TrainDraft(ctx context.Context, j Job, r Recipe, target Shape) error {
	text, err := j.Open(ctx, r.Shape.Vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	from := filepath.Join(j.Dir, "target")
	own, err := r.Generated.set(ctx, &j, filepath.Join(from, "model-f32.gguf"), filepath.Join(j.Dir, "draft", "generated"),
		text.train)
	if err != nil {
		return err
	}
	pool := par.New(j.Threads)
	defer pool.Close()
	teacher, err := NewNetwork(target, pool, gemm.BF16)
	if err != nil {
		return err
	}
	if err := teacher.Load(filepath.Join(from, "hf")); err != nil {
		return err
	}
	j.Notef("training the draft model")
	c := j.config("draft", r, text.valid)
	n, err := Run(ctx, c, append(text.train, own), &Teacher{Net: teacher, Share: r.Distill})
	if err != nil {
		return err
	}
	return n.export(c.Dir, "grove draft", text)
}

// OpenTarget opens the target that the job has trained, for heads to learn from. The caller must close it.
func (j *Job) OpenTarget() (*model.Model, error) {
	j.Vocabulary = filepath.Join(j.Dir, "target", "model-q8_0.gguf")
	m, err := model.Open(j.Vocabulary, model.Options{Threads: j.Threads})
	j.Target = m
	return m, err
}

// exportRun writes a card that states what was made, from which text, and the last measures of
// held-out text. It plots the loss of a run that measured any.
func exportRun(dir, name, about string, text *Corpus) error {
	last, err := lastMeasures(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n## Training text\n\n%s\n## Training\n\n%d steps over %d tokens, in %v.\n\n## Held-out text\n\n| measure | |\n|---|---|\n",
		name, about, text.card, last.Step, last.Tokens, time.Duration(last.Seconds*float64(time.Second)).Round(time.Second))
	for _, of := range []struct {
		unit   string
		values map[string]float64
	}{{" loss, nats", last.Validation}, {"", last.Figures}} {
		for _, key := range slices.Sorted(maps.Keys(of.values)) {
			fmt.Fprintf(&b, "| %s%s | %.3f |\n", key, of.unit, of.values[key])
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "card.md"), []byte(b.String()), 0o666); err != nil {
		return err
	}
	if len(last.Validation) == 0 {
		return nil
	}
	return PlotLoss(filepath.Join(dir, "metrics.jsonl"), filepath.Join(dir, "loss.png"))
}

// export writes the finished network in every form.
func (n *Network) export(dir, name string, text *Corpus) error {
	c := n.Shape.Config()
	about := fmt.Sprintf("A model of %d layers, hidden size %d and a vocabulary of %d tokens.", c.Layers, c.Hidden, c.Vocab)
	if err := exportRun(dir, name, about, text); err != nil {
		return err
	}
	for _, t := range exported {
		if err := n.WriteGGUF(filepath.Join(dir, t.file), name, text.vocabulary, t.kind); err != nil {
			return err
		}
	}
	return n.WriteFolder(filepath.Join(dir, "hf"), text.Tok.EOS())
}
