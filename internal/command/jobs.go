// Functions shared by the training commands: where a job's files are, what it reports, how it ends.

package command

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
)

// TrainFlags are the flags of every stage.
type TrainFlags struct {
	Dir    string        `required:"" help:"Folder for the vocabulary, checkpoints, metrics and models." placeholder:"DIR"`
	Data   string        `required:"" help:"Folder with prose/*.txt, math/gsm8k_train.jsonl and math/gsm8k_test.jsonl." placeholder:"DIR"`
	GoRoot string        `name:"goroot" help:"Go toolchain whose library to read; default: the go command's." placeholder:"DIR"`
	Save   time.Duration `help:"Time between checkpoints." default:"2m"`
}

func (f *TrainFlags) job(p *Program) (train.Job, error) {
	root := f.GoRoot
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		root = strings.TrimSpace(string(out))
		if err != nil || root == "" {
			return train.Job{}, Usagef("where is the Go toolchain? The go command does not say: name its folder with --goroot")
		}
	}
	for _, need := range []struct{ flag, dir string }{{"--data", f.Data}, {"--goroot", filepath.Join(root, "src")}} {
		if info, err := os.Stat(need.dir); err != nil || !info.IsDir() {
			return train.Job{}, Usagef("%s: %s is no folder", need.flag, need.dir)
		}
	}
	j := train.StandardJob(f.Dir, root, f.Data)
	j.Threads = p.Threads
	return j, p.Prepare(&j, f.Save)
}

// Prepare makes a job report to the user, and sets how often it saves.
func (p *Program) Prepare(j *train.Job, save time.Duration) error {
	if save < time.Second {
		return Usagef("--save %v: want a second or more", save)
	}
	j.SaveEvery, j.Report = save, p.reportTraining
	j.Note = func(s string) {
		if !p.JSON {
			fmt.Fprintln(p.Stdout, s)
		}
	}
	return nil
}

// reportTraining prints every tenth step, and those that measured held-out text.
func (p *Program) reportTraining(q train.Progress) {
	if p.JSON {
		_ = p.PrintJSON(map[string]any{"step": q.Step, "steps": q.Steps, "loss": q.Loss, "tokens": q.Tokens,
			"tokens_per_s": q.PerSecond, "seconds_left": q.Left.Seconds(), "validation": q.Validation, "figures": q.Figures})
		return
	}
	if q.Step%10 == 0 || q.Step == q.Steps || len(q.Validation) > 0 {
		fmt.Fprintln(p.Stdout, q)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Validation)) {
		fmt.Fprintf(p.Stdout, "  held-out %s: %.4f nats a token\n", name, q.Validation[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.Figures)) {
		fmt.Fprintf(p.Stdout, "  held-out %s: %.3f\n", name, q.Figures[name])
	}
}

// RunStage runs a stage until it ends or is interrupted.
func (f *TrainFlags) RunStage(p *Program, stage func(ctx context.Context, j train.Job) error) error {
	j, err := f.job(p)
	if err != nil {
		return err
	}
	return p.RunTraining(func(ctx context.Context) error { return stage(ctx, j) })
}

// RunTraining runs training that, when called again, continues from where it was.
func (p *Program) RunTraining(run func(ctx context.Context) error) error {
	ctx, stop := p.Context()
	defer stop()
	err := run(ctx)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(p.Stderr, "stopped; run the same command again to continue")
	}
	return err
}

// HeadName refuses names of folders that other stages use.
func HeadName(name string) error {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") ||
		slices.Contains([]string{"target", "draft", "cache", "generated", "features"}, name) {
		return Usagef("--name %q: want the name of a folder below --dir that no other stage uses", name)
	}
	return nil
}
