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

	"github.com/grovellm/grove/train"
	"github.com/grovellm/grove/train/bpe"
)

type trainCmd struct {
	Tokenizer trainTokenizerCmd `cmd:"" help:"Learn the vocabulary."`
	Target    trainTargetCmd    `cmd:"" help:"Train the target model, and the vocabulary before it."`
	Draft     trainDraftCmd     `cmd:"" help:"Train the draft model, distilled from the target."`
	Jet       trainJetCmd       `cmd:"" help:"Train a block head, which drafts a whole tree in one pass."`
	Eagle     trainEagleCmd     `cmd:"" help:"Train an EAGLE head, a layer that goes on from its own states."`
	SpecBlock trainSpecBlockCmd `cmd:"" name:"specblock" help:"Train a SpecBlock head, which drafts in blocks that go on from each other."`
	Router    trainRouterCmd    `cmd:"" help:"Train a router, which chooses the tokens that an EAGLE head computes."`
	Sibling   trainSiblingCmd   `cmd:"" help:"Train a family with a vocabulary of twice the size, to study output heads."`
}

func (trainCmd) Help() string {
	return `Makes the project's own models: see docs/training.md. A command that was interrupted or killed goes on from its
last checkpoint when it is given again, and ends in the very weights of a run left alone.`
}

// trainFlags are those of every stage.
type trainFlags struct {
	Dir    string        `required:"" help:"Folder for the vocabulary, checkpoints, metrics and models." type:"path" placeholder:"DIR"`
	Data   string        `required:"" help:"Folder with prose/*.txt, math/gsm8k_train.jsonl and math/gsm8k_test.jsonl." type:"path" placeholder:"DIR"`
	GoRoot string        `name:"goroot" help:"The Go toolchain whose standard library to read; asked of the go command by default." type:"path" placeholder:"DIR"`
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
	if f.Save < time.Second {
		return train.Job{}, usagef("--save %v: want a second or more", f.Save)
	}
	j := train.StandardJob(f.Dir, root, f.Data)
	j.Threads, j.SaveEvery = p.Threads, f.Save
	j.Note = func(s string) {
		if !p.JSON {
			fmt.Fprintln(p.stdout, s)
		}
	}
	j.Report = func(q train.Progress) { p.reportTraining(q) }
	return j, nil
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
	ctx, stop := p.context()
	defer stop()
	err = stage(ctx, j)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(p.stderr, "stopped; the same command goes on from here")
	}
	return err
}

type trainTokenizerCmd struct{ trainFlags }

func (c *trainTokenizerCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		return train.Tokenizer(ctx, j, bpe.Options{Threads: p.Threads})
	})
}

type trainTargetCmd struct{ trainFlags }

func (c *trainTargetCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error { return train.Target(ctx, j, train.TargetRecipe()) })
}

type trainDraftCmd struct{ trainFlags }

func (c *trainDraftCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		if err := train.Target(ctx, j, train.TargetRecipe()); err != nil {
			return err
		}
		return train.Draft(ctx, j, train.DraftRecipe(), train.TargetRecipe().Shape)
	})
}
