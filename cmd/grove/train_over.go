package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tokenizer"
)

// overFlags specify which model a head or a router is trained for, and on what text.
type overFlags struct {
	Model        string        `short:"m" hub:"" env:"GROVE_MODEL" help:"Model to train for: a GGUF file, Hugging Face folder, or ORG/REPO; default: grove's small model." placeholder:"FILE" group:"Model"`
	Dir          string        `help:"Folder for text, checkpoints and heads; default: named after the model." placeholder:"DIR"`
	Text         []string      `help:"Training text: a file, a folder or a pattern; may be repeated. The model continues parts of it." placeholder:"FILES" sep:"none"`
	Prompts      string        `help:"Prompts in JSONL, or a suite (see grove bench spec --list), which the model answers. Without --text and --prompts, a chat model makes up prompts." placeholder:"FILE"`
	OwnShare     float64       `help:"With --prompts: share of the conversations whose prompts the model makes up (${default})." default:"0" placeholder:"S"`
	Raw          bool          `help:"Continue prompts as they are, not through the model's chat template."`
	Teacher      string        `help:"OpenAI-compatible server of the same model, which generates the text instead." placeholder:"URL"`
	Answers      int           `help:"Maximum number of conversations to hold; 0 means 4096." default:"0" placeholder:"N"`
	Skip         int           `help:"Conversations to skip first, so that a head that has learned from them learns from others (${default})." default:"0" placeholder:"N"`
	Length       int           `help:"Maximum tokens of an answer; 0 means 320." default:"0" placeholder:"N"`
	Temperatures []float64     `help:"Temperatures of answers, taken in turn (${default})." default:"0,1" placeholder:"T,..."`
	Requests     int           `help:"Conversations to hold at the same time; 0 means 32." default:"0" placeholder:"N"`
	Data         string        `help:"Train grove's own models: folder with prose/*.txt, math/gsm8k_train.jsonl and math/gsm8k_test.jsonl." placeholder:"DIR"`
	GoRoot       string        `name:"goroot" help:"With --data: Go toolchain whose library to read; default: the go command's." placeholder:"DIR"`
	Features     string        `help:"Disk space for the model's outputs on the texts, which the next head, recipe or run reuses; 0: none (${default})." default:"2G" placeholder:"SIZE"`
	Save         time.Duration `help:"Time between checkpoints." default:"2m"`
}

// run opens the model, and runs a stage of a job for it. check refuses a job before the model makes any text.
func (f *overFlags) run(p *command.Program, check func(j train.Job) error,
	stage func(ctx context.Context, j train.Job) error) error {
	limit, err := parseSize(f.Features)
	if err != nil {
		return command.Usagef("--features %q: %v", f.Features, err)
	}
	if f.Data != "" {
		return f.runOwn(p, limit, check, stage)
	}
	if err := f.check(); err != nil {
		return err
	}
	m, err := (&command.ModelFlags{Model: f.Model, OpenFlags: command.OpenFlags{KVFlag: command.KVFlag{KV: "auto"}}}).Open(
		p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	j := train.Job{Dir: f.dir(), Threads: p.Threads, Target: inside.Target(m).Model, Sparing: true}
	if strings.HasSuffix(f.Model, ".gguf") {
		j.Vocabulary = f.Model
	}
	if err := p.Prepare(&j, f.Save); err != nil {
		return err
	}
	for _, text := range f.Text {
		s, err := data.ParseSource(text)
		if err != nil {
			return command.Usagef("--text: %v", err)
		}
		j.Sources = append(j.Sources, s)
	}
	asked := j
	if f.answers() {
		asked.Answers = []train.Conversation{} // none yet
	}
	if err := check(asked); err != nil {
		return err
	}
	return p.RunTraining(func(ctx context.Context) error {
		if err := f.answer(ctx, m, &j); err != nil {
			return err
		}
		if err := openFeatures(&j, limit); err != nil {
			return err
		}
		return stage(ctx, j)
	})
}

// runOwn runs a stage for the target of --dir, and trains the target first if it is not there.
func (f *overFlags) runOwn(p *command.Program, features int64, check func(j train.Job) error,
	stage func(ctx context.Context, j train.Job) error) error {
	if f.Model != "" || len(f.Text) > 0 || f.Prompts != "" || f.Teacher != "" {
		return command.Usagef("--data trains grove's own models: leave out --model, --text, --prompts and --teacher")
	}
	if f.Dir == "" {
		return command.Usagef("--data trains grove's own models: want --dir too, their folder")
	}
	own := command.TrainFlags{Dir: f.Dir, Data: f.Data, GoRoot: f.GoRoot, Save: f.Save}
	return own.RunStage(p, func(ctx context.Context, j train.Job) error {
		if err := train.TrainTarget(ctx, j, train.TargetRecipe()); err != nil {
			return err
		}
		m, err := j.OpenTarget()
		if err != nil {
			return err
		}
		if err := cmp.Or(check(j), openFeatures(&j, features)); err != nil {
			return errors.Join(err, m.Close())
		}
		return errors.Join(stage(ctx, j), m.Close())
	})
}

// openFeatures opens the folder of features that the target computes from texts.
func openFeatures(j *train.Job, limit int64) (err error) {
	if limit > 0 {
		j.Features, err = train.OpenFeatures(filepath.Join(j.Dir, "features"), limit, j.Note)
	}
	return err
}

func (f *overFlags) check() error {
	switch {
	case len(f.Text) > 0 && f.Prompts != "":
		return command.Usagef("--text and --prompts: want one of them")
	case len(f.Temperatures) == 0 || slices.ContainsFunc(f.Temperatures, func(t float64) bool { return !(t >= 0 && t <= 100) }):
		return command.Usagef("--temperatures %v: want one or more, each 0 to 100", f.Temperatures)
	case !(f.OwnShare >= 0 && f.OwnShare <= 1) || f.OwnShare > 0 && f.Prompts == "":
		return command.Usagef("--own-share %g: want 0 to 1, with --prompts", f.OwnShare)
	case f.Answers < 0 || f.Skip < 0 || f.Length < 0 || f.Length == 1 || f.Requests < 0:
		return command.Usagef("--answers %d, --skip %d, --length %d, --requests %d: want positive numbers, or 0 for the usual ones, and answers of 2 tokens or more",
			f.Answers, f.Skip, f.Length, f.Requests)
	case !f.answers() && (f.Answers > 0 || f.Skip > 0 || f.Length > 0 || f.Requests > 0 || f.Raw):
		return command.Usagef("--answers, --skip, --length, --requests and --raw are of conversations: with --text the model continues parts of the text, so leave them out")
	}
	f.Answers, f.Length = cmp.Or(f.Answers, 4096), cmp.Or(f.Length, 320)
	f.Requests = cmp.Or(f.Requests, 32)
	return nil
}

// dir returns the job's folder.
func (f *overFlags) dir() string {
	if f.Dir != "" || f.Model == "" {
		return cmp.Or(f.Dir, command.Embedded+"-heads")
	}
	model, _ := filepath.Abs(f.Model)
	if up := filepath.Dir(model); filepath.Base(up) == "snapshots" { // models--ORG--REPO/snapshots/COMMIT
		model = strings.ReplaceAll(filepath.Dir(up), "--", "/")
	}
	return strings.TrimSuffix(filepath.Base(model), ".gguf") + "-heads"
}

// answers reports whether a model or a server is to write the job's text before training.
func (f *overFlags) answers() bool { return len(f.Text) == 0 || f.Teacher != "" }

// answer makes the job's text of conversations, if the model, or a server of it, is to answer prompts.
func (f *overFlags) answer(ctx context.Context, m *grove.Model, j *train.Job) (err error) {
	if !f.answers() {
		return nil
	}
	t := &talker{m: m, temperatures: f.Temperatures, longest: f.Length, longestAsk: min(256, m.Context()/4), ownTurns: 2}
	if f.Length >= m.Context() {
		return command.Usagef("--length %d: want less than the model's context of %d tokens, which a prompt is in too", f.Length, m.Context())
	}
	if len(m.Tokenizer().Templates()) > 0 && !f.Raw {
		if t.layout, err = m.Layout(); err != nil {
			return err
		}
	}
	switch {
	case f.Prompts != "":
		if t.prompts, err = readPrompts(f.Prompts, f.Skip+f.Answers, t.check); err != nil {
			return err
		}
		t.ownShare = f.OwnShare
	case len(f.Text) > 0:
		text, err := j.OpenCorpus(ctx)
		if err != nil {
			return err
		}
		beginnings, err := text.Beginnings(f.Skip + f.Answers)
		if err := errors.Join(err, text.Close()); err != nil {
			return err
		}
		t.layout = nil
		for _, tokens := range beginnings {
			begun := m.Tokenizer().Decode(tokens, tokenizer.DecodeOptions{})
			t.prompts = append(t.prompts, []grove.Message{{Role: "user", Content: begun}})
		}
	default:
		t.ownShare = 1
	}
	if f.Raw && t.ownShare > 0 {
		return command.Usagef("--raw: the model can make up prompts only through its chat template: leave --raw out, or name some with --prompts FILE or text with --text FILES")
	}
	if t.layout == nil && t.ownShare > 0 {
		return command.Usagef("%s has no chat template, which it needs to make up prompts: name some with --prompts FILE, or text with --text FILES", f.Model)
	}
	n := f.Answers
	if t.ownShare == 0 {
		n = min(n, len(t.prompts)-f.Skip)
	}
	if n < 1 {
		return command.Usagef("--skip %d: want less than the %d prompts", f.Skip, len(t.prompts))
	}
	who := "the model"
	t.say = t.sayItself
	if f.Teacher != "" {
		s := &train.Server{URL: f.Teacher, Key: os.Getenv("OPENAI_API_KEY"), Tokenizer: m.Tokenizer(), Note: j.Note}
		who, t.say = f.Teacher, s.Continue
	}
	return j.Answer(ctx, f.Skip, n, f.Requests, t.source(train.FingerprintModel(j.Target), who), t.key, t.talk)
}
