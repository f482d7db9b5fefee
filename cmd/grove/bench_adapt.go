package main

import (
	"cmp"
	"strings"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/sample"
)

type benchAdaptCmd struct {
	command.ModelFlags

	Stream  []string `help:"Streams of prompts: a suite (grove bench spec --list), novels or attack. A+B mixes, A>B runs B after A, NAME*100 takes 100 prompts (${default})." default:"novels,math" placeholder:"NAME" group:"What to measure"`
	Drafter string   `short:"d" help:"A drafter with a trained head, with its options (${default})." default:"specblock" placeholder:"NAME" group:"What to measure"`
	Policy  []string `help:"Policies, compared with the first: frozen (no learning), judged (weights are used once judged better), bandit (the paper's), osd (every 8 queries), always (every query) (${default})." default:"frozen,judged,osd" placeholder:"NAME" group:"What to measure"`

	Queries     int     `help:"Queries of a stream (${default})." default:"300" placeholder:"N" group:"How much"`
	Epochs      int     `help:"Times that each stream is run (${default})." default:"1" placeholder:"N" group:"How much"`
	MaxTokens   int     `short:"n" help:"Generate at most N tokens (${default})." default:"128" placeholder:"N" group:"How much"`
	Temperature float32 `short:"t" help:"0 takes the most probable token; 0 to 100." default:"0" placeholder:"T" group:"How much"`
	Seed        uint64  `help:"Seed of streams, sampling and learning." default:"0" placeholder:"N" group:"How much"`
	Chat        bool    `help:"Put questions into the model's chat template." group:"How much"`

	Budget       int     `short:"b" help:"Maximum nodes of a draft tree, 2 to 4096; 0 means ${budget}." default:"0" placeholder:"N" group:"Speculation"`
	NoController bool    `help:"Draft and verify whole trees in every round, even when they do not pay off." group:"Speculation"`
	Wait         bool    `help:"Wait for each update. With --share 100, τ then does not depend on the machine's speed." group:"Learning"`
	Workers      int     `help:"Processors of an update (${default})." default:"1" placeholder:"N" group:"Learning"`
	Share        float64 `help:"Share of decoding time that learning may cost before it has gained anything; 100 sets no bound; 0 means the default (policy judged)." default:"0" placeholder:"S" group:"Learning"`
	Rate         float32 `help:"Learning rate of full updates; 0 means the default." default:"0" placeholder:"R" group:"Learning"`

	Data   string `env:"GROVE_DATA" help:"Folder with prompts/, math/ and prose/ (${default})." default:"../shared/data" placeholder:"DIR" group:"Files"`
	GoRoot string `name:"goroot" help:"Go toolchain whose library the suite go reads; default: the go command's." placeholder:"DIR" group:"Files"`
	Out    string `help:"Write the report (JSON, Markdown) and figures (PNG, SVG) into this folder." placeholder:"DIR" group:"Files"`
}

func (benchAdaptCmd) Help() string {
	return `Decodes streams of prompts with a draft head that learns and with one that does not. It reports tokens per pass (τ),
tokens per second less the cost of learning, and whether every token is the same. docs/adapt.md explains it.

Prints Markdown, or JSON with --json. Ctrl-C ends it with the results so far.

Examples:
    grove bench adapt --head code-only.gguf --pad 500M --json
    grove bench adapt -d jetspec --stream novels+math --epochs 4 --queries 100
    grove bench adapt -d eagle3 --stream "attack*100>go" --policy frozen,judged,bandit,osd,always --wait`
}

func (cmd *benchAdaptCmd) Run(p *command.Program) error {
	err := cmp.Or(within("queries", 1, 1e6, cmd.Queries), within("epochs", 1, 1e4, cmd.Epochs),
		within("max-tokens", 2, 1e6, cmd.MaxTokens), within("workers", 1, 1024, cmd.Workers))
	if cmd.Budget != 0 {
		err = cmp.Or(err, within("budget", 2, maxBudget, cmd.Budget))
	}
	if err != nil {
		return err
	}
	if cmd.Adapt != "" {
		return command.Usagef("--adapt (GROVE_ADAPT): every policy starts with the head as it was opened: leave it out, and for " +
			"what was learned before name the file of grove adapt --export with --head")
	}
	sampling := sample.Params{Temperature: cmd.Temperature, Seed: cmd.Seed}
	if err := sampling.Validate(); err != nil {
		return err
	}
	o := bench.AdaptOptions{
		Drafter: cmd.Drafter, Policies: cmd.Policy, Epochs: cmd.Epochs, Sampling: sampling, MaxTokens: cmd.MaxTokens,
		Chat: cmd.Chat, Budget: cmd.Budget, Uncontrolled: cmd.NoController,
		Adapt: adapt.Options{Wait: cmd.Wait, Seed: cmd.Seed, Threads: cmd.Workers, Tuning: adapt.DefaultTuning()},
	}
	switch {
	case !(cmd.Rate >= 0):
		return command.Usagef("--rate %g: want 0 or more", cmd.Rate)
	case !(cmd.Share >= 0):
		return command.Usagef("--share %g: want 0 or more", cmd.Share)
	}
	o.Adapt.Rate[adapt.Full] = cmp.Or(cmd.Rate, o.Adapt.Rate[adapt.Full])
	o.Adapt.Share = cmp.Or(cmd.Share, o.Adapt.Share)
	from := bench.SuiteOptions{Data: cmd.Data, GoRoot: cmd.GoRoot}
	for _, text := range cmd.Stream {
		if strings.Contains(text, "go") || strings.Contains(text, "edit") {
			from.GoRoot = command.FindGoRoot(cmd.GoRoot)
		}
		s, err := bench.OpenStream(text, cmd.Queries, cmd.Seed, from)
		if err != nil {
			return command.Usagef("--stream: %w", err)
		}
		o.Streams = append(o.Streams, s)
	}
	if err := command.OutFolder(cmd.Out); err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	o.Target = inside.Target(m)
	o.ModelName = command.OwnName(o.Target.Model, cmd.Model)
	bar := p.Progress("queries", false)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	report, err := bench.Adapt(ctx, o)
	bar.End()
	if report == nil || len(report.Streams) == 0 {
		return err
	}
	return cmp.Or(printReport(p, report, cmd.Out, report.Markdown, report.Save), err)
}
