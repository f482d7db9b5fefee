package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/sample"
)

// overFlags say which model a head or a router is trained for, and on what text.
type overFlags struct {
	Model    string        `short:"m" hub:"" env:"GROVE_MODEL" help:"Model to train for: a GGUF file, Hugging Face folder, or ORG/REPO; default: grove's small model." placeholder:"FILE" group:"Model"`
	Dir      string        `help:"Folder for text, checkpoints and heads; default: named after the model." placeholder:"DIR"`
	Text     []string      `help:"Training text: a file, a folder or a pattern; may be repeated. The model continues parts of it." placeholder:"FILES" sep:"none"`
	Prompts  string        `help:"Prompts in JSONL, or a suite (see grove bench spec --list). The model answers them." placeholder:"FILE"`
	Teacher  string        `help:"OpenAI-compatible server of the same model, which generates the text instead." placeholder:"URL"`
	Answers  int           `help:"Prompts to answer, at most (${default})." default:"4096" placeholder:"N"`
	Length   int           `help:"Tokens of an answer, at most (${default})." default:"320" placeholder:"N"`
	Requests int           `help:"Prompts to answer at the same time (${default})." default:"16" placeholder:"N"`
	Data     string        `help:"Train grove's own models: folder with prose/*.txt, math/gsm8k_train.jsonl and math/gsm8k_test.jsonl." placeholder:"DIR"`
	GoRoot   string        `name:"goroot" help:"With --data: Go toolchain whose library to read; default: the go command's." placeholder:"DIR"`
	Features string        `help:"Disk for what the model computes of texts, which the next head, recipe or run reads; 0: none (${default})." default:"2G" placeholder:"SIZE"`
	Save     time.Duration `help:"Time between checkpoints." default:"2m"`
}

// run opens the model, and runs a stage of a job for it.
func (f *overFlags) run(p *command.Program, stage func(ctx context.Context, j train.Job) error) error {
	limit, err := parseSize(f.Features)
	if err != nil {
		return command.Usagef("--features %q: %v", f.Features, err)
	}
	if f.Data != "" {
		return f.runOwn(p, limit, stage)
	}
	if err := f.check(); err != nil {
		return err
	}
	m, err := (&command.ModelFlags{Model: f.Model, OpenFlags: command.OpenFlags{KVFlag: command.KVFlag{KV: "auto"}}}).Open(p)
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

// runOwn runs a stage for the target of --dir, which is trained where it is not there yet.
func (f *overFlags) runOwn(p *command.Program, features int64, stage func(ctx context.Context, j train.Job) error) error {
	if f.Model != "" || len(f.Text) > 0 || f.Prompts != "" || f.Teacher != "" {
		return command.Usagef("--data trains grove's own models: want no --model, --text, --prompts or --teacher beside it")
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
		if err := openFeatures(&j, features); err != nil {
			return errors.Join(err, m.Close())
		}
		return errors.Join(stage(ctx, j), m.Close())
	})
}

// openFeatures opens the folder of what the target computes of texts.
func openFeatures(j *train.Job, limit int64) (err error) {
	if limit > 0 {
		j.Features, err = train.OpenFeatures(filepath.Join(j.Dir, "features"), limit, j.Note)
	}
	return err
}

func (f *overFlags) check() error {
	switch {
	case len(f.Text) == 0 && f.Prompts == "":
		return command.Usagef("a head learns from text that the model generates: name some with --text FILES, or prompts with --prompts FILE")
	case len(f.Text) > 0 && f.Prompts != "":
		return command.Usagef("--text and --prompts: want one of them")
	case f.Answers < 1 || f.Length < 2 || f.Requests < 1:
		return command.Usagef("--answers %d, --length %d, --requests %d: want positive numbers, and answers of 2 tokens or more", f.Answers, f.Length, f.Requests)
	}
	return nil
}

// dir is the folder of the job.
func (f *overFlags) dir() string {
	if f.Dir != "" {
		return f.Dir
	}
	name := command.Embedded
	if f.Model != "" {
		name = strings.TrimSuffix(filepath.Base(filepath.Clean(f.Model)), ".gguf")
	}
	return name + "-heads"
}

// answer makes the job's text of prompts, where the model, or a server of it, is to answer some.
func (f *overFlags) answer(ctx context.Context, m *grove.Model, j *train.Job) error {
	if f.Prompts == "" && f.Teacher == "" {
		return nil
	}
	var prompts [][]int32
	if f.Prompts != "" {
		if f.Length >= m.Context() {
			return command.Usagef("--length %d: want less than the model's context of %d tokens, which a prompt is in too", f.Length, m.Context())
		}
		suite, err := openSuite(f.Prompts, os.Getenv("GROVE_DATA"), f.Answers)
		if err != nil {
			return err
		}
		if prompts, err = tokenize(m, suite, m.Context()-f.Length); err != nil {
			return err
		}
	} else {
		text, err := j.OpenCorpus(ctx)
		if err != nil {
			return err
		}
		prompts, err = text.Beginnings(f.Answers)
		if err := errors.Join(err, text.Close()); err != nil {
			return err
		}
	}
	source, answer := fmt.Sprint("the model, ", f.Length), f.generate(m)
	if f.Teacher != "" {
		s := &train.Server{URL: f.Teacher, Key: os.Getenv("OPENAI_API_KEY"), MaxTokens: f.Length, Tokenizer: m.Tokenizer()}
		source, answer = fmt.Sprint(f.Teacher, f.Length), s.Answerer()
	}
	return j.Answer(ctx, prompts, f.Requests, source, answer)
}

// generate answers with the model. Prompts with even numbers are continued at temperature 0, others at 1.
func (f *overFlags) generate(m *grove.Model) train.Answerer {
	return func(ctx context.Context, number int, prompt []int32) ([]int32, error) {
		r := grove.Request{MaxTokens: f.Length, Sampling: sample.Params{Temperature: float32(number % 2), Seed: uint64(number)}}
		result, err := grove.Collect(m.GenerateTokens(ctx, prompt, r))
		if err != nil {
			return nil, err
		}
		return result.Tokens, nil
	}
}
