package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/bpe"
)

type trainCmd struct {
	Tokenizer trainTokenizerCmd `cmd:"" help:"Learn the vocabulary."`
	Target    trainTargetCmd    `cmd:"" help:"Train the target model, and the vocabulary before it."`
	Draft     trainDraftCmd     `cmd:"" help:"Train the draft model, distilled from the target."`
	trainHeadCmds
	Router  trainRouterCmd  `cmd:"" help:"Train a router, which chooses the vocabulary of each draft step."`
	Text    trainTextCmd    `cmd:"" help:"Fit the weights of the modifier +text for a head."`
	Sibling trainSiblingCmd `cmd:"" help:"Train models with twice the vocabulary, to study output heads."`
}

func (trainCmd) Help() string {
	return `Trains draft heads for any model (docs/train-a-head.md), and the models that are part of grove (docs/training.md).
An interrupted command continues when it is given again, and ends in the same weights.

Examples:
    grove train eagle -m model.gguf --text 'texts/*.txt'
    grove train target --dir own --data DATA`
}

// trainFlags are those of every stage.
type trainFlags struct {
	Dir    string        `required:"" help:"Folder for the vocabulary, checkpoints, metrics and models." placeholder:"DIR"`
	Data   string        `required:"" help:"Folder with prose/*.txt, math/gsm8k_train.jsonl and math/gsm8k_test.jsonl." placeholder:"DIR"`
	GoRoot string        `name:"goroot" help:"Go toolchain whose library to read; default: the go command's." placeholder:"DIR"`
	Save   time.Duration `help:"Time between checkpoints." default:"2m"`
}

func (f *trainFlags) job(p *program) (train.Job, error) {
	root := f.GoRoot
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if root = strings.TrimSpace(string(out)); err != nil || root == "" {
			return train.Job{}, usagef("where is the Go toolchain? The go command does not say: name its folder with --goroot")
		}
	}
	for _, need := range []struct{ flag, dir string }{{"--data", f.Data}, {"--goroot", filepath.Join(root, "src")}} {
		if info, err := os.Stat(need.dir); err != nil || !info.IsDir() {
			return train.Job{}, usagef("%s: %s is no folder", need.flag, need.dir)
		}
	}
	j := train.StandardJob(f.Dir, root, f.Data)
	j.Threads = p.Threads
	return j, p.prepare(&j, f.Save)
}

// prepare has a job report to the user, and save so often.
func (p *program) prepare(j *train.Job, save time.Duration) error {
	if save < time.Second {
		return usagef("--save %v: want a second or more", save)
	}
	j.SaveEvery, j.Report = save, p.reportTraining
	j.Note = func(s string) {
		if !p.JSON {
			fmt.Fprintln(p.stdout, s)
		}
	}
	return nil
}

// reportTraining prints a step: every tenth, and those that measured held-out text.
func (p *program) reportTraining(q train.Progress) {
	if p.JSON {
		_ = p.printJSON(map[string]any{"step": q.Step, "steps": q.Steps, "loss": q.Loss, "tokens": q.Tokens, "tokens_per_s": q.PerSecond,
			"peak_share": q.Peak, "seconds_left": q.Left.Seconds(), "validation": q.Validation, "figures": q.Figures})
		return
	}
	if q.Step%10 == 0 || q.Step == q.Steps || len(q.Validation) > 0 {
		fmt.Fprintln(p.stdout, q)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Validation)) {
		fmt.Fprintf(p.stdout, "  held-out %s: %.4f nats a token\n", name, q.Validation[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.Figures)) {
		fmt.Fprintf(p.stdout, "  held-out %s: %.3f\n", name, q.Figures[name])
	}
}

// runStage runs a stage until it ends or is interrupted.
func (f *trainFlags) runStage(p *program, stage func(ctx context.Context, j train.Job) error) error {
	j, err := f.job(p)
	if err != nil {
		return err
	}
	return p.runTraining(func(ctx context.Context) error { return stage(ctx, j) })
}

// runTraining runs what goes on from where it was when it is called again.
func (p *program) runTraining(run func(ctx context.Context) error) error {
	ctx, stop := p.context()
	defer stop()
	err := run(ctx)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(p.stderr, "stopped; the same command goes on from here")
	}
	return err
}

// headName refuses folders that other stages use.
func headName(name string) error {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") || slices.Contains([]string{"target", "draft", "cache", "generated"}, name) {
		return usagef("--name %q: want the name of a folder below --dir that no other stage uses", name)
	}
	return nil
}

type trainTokenizerCmd struct{ trainFlags }

func (trainTokenizerCmd) Help() string {
	return "Example:\n    grove train tokenizer --dir own --data DATA"
}

func (c *trainTokenizerCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		return train.Tokenizer(ctx, j, bpe.Options{Threads: p.Threads})
	})
}

type trainTargetCmd struct{ trainFlags }

func (trainTargetCmd) Help() string {
	return "Example:\n    grove train target --dir own --data DATA"
}

func (c *trainTargetCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error { return train.TrainTarget(ctx, j, train.TargetRecipe()) })
}

type trainDraftCmd struct{ trainFlags }

func (trainDraftCmd) Help() string {
	return "Example:\n    grove train draft --dir own --data DATA"
}

func (c *trainDraftCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		if err := train.TrainTarget(ctx, j, train.TargetRecipe()); err != nil {
			return err
		}
		return train.TrainDraft(ctx, j, train.DraftRecipe(), train.TargetRecipe().Shape)
	})
}
