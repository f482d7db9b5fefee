// Models of the Hugging Face hub: fetched, listed, removed, and found if a flag names one.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/hub/catalog"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
)

type pullCmd struct {
	Model string `arg:"" help:"ORG/REPO, with :TYPE such as :Q4_K_M, or :FILE."`

	Head string `help:"Fetch a draft head too: ORG/REPO, or best for the first known head that grove can run." placeholder:"NAME"`
}

func (pullCmd) Help() string {
	return `Fetches a model into the cache that the hub's own tools use, and prints its path. Then -m ORG/REPO runs it.
An interrupted fetch continues where it stopped. Every file is checked against its hash.

Without a type, grove takes the first available of Q4_K_M, Q4_K_S, Q4_0, Q4_1, Q5_K_M, Q5_K_S, Q5_0, Q5_1, Q6_K,
Q8_0, BF16, F16, F32, then the folder of safetensors. :safetensors names that folder.

With --head, it also fetches a draft head, checks that the head fits the model's shape, and prints the head's path on
a second line. Without --head, it names the heads that it knows for the model.

Environment: HF_TOKEN (or the token file), HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME, HF_HUB_CACHE.

Examples:
    grove pull Qwen/Qwen3-8B-GGUF
    grove pull Qwen/Qwen3-8B-GGUF:Q8_0
    grove pull Qwen/Qwen3-8B-GGUF --head best
    grove run -m Qwen/Qwen3-8B-GGUF "The capital of France is"`
}

func (cmd *pullCmd) Run(p *command.Program) error {
	name, c, err := parseHubModel(cmd.Model)
	if err != nil {
		return err
	}
	if _, ok := hub.ParseName(cmd.Head); !ok && cmd.Head != "" && cmd.Head != best {
		return command.Usagef("--head %q: want best, ORG/REPO, ORG/REPO:TYPE or ORG/REPO:FILE", cmd.Head)
	}
	ctx, stop := p.Context()
	defer stop()
	bars := newHubBars(p, c)
	kept := func(err error) error {
		bars.end()
		if ctx.Err() != nil {
			fmt.Fprintln(p.Stderr, "The part that was fetched is kept: run the same command again to continue.")
		}
		return err
	}
	l, m, path, err := fetchModel(ctx, c, name)
	if err != nil {
		return kept(err)
	}
	snapshot := strings.TrimSuffix(path, filepath.FromSlash(m.Path))
	offers, err := hub.OffersFor(name.Repo, snapshot)
	if err != nil {
		fmt.Fprintf(p.Stderr, "note: %v\n", err)
	}
	head, headPath := "", ""
	if cmd.Head != "" {
		if head, headPath, err = cmd.fetchHead(ctx, p, c, path, offers.Heads); err != nil {
			return kept(err)
		}
	}
	bars.end()
	if p.JSON {
		return p.PrintJSON(struct {
			Repo   string `json:"repository"`
			Commit string `json:"commit"`
			File   string `json:"file"`
			Type   string `json:"type"`
			Bytes  int64  `json:"bytes"`
			Path   string `json:"path"`
			hub.Offers
			Head     string `json:"head,omitempty"`
			HeadPath string `json:"head_path,omitempty"`
		}{l.Repo, l.Commit, m.Path, m.Type, m.Bytes(), path, offers, head, headPath})
	}
	if head != "" {
		fmt.Fprintf(p.Stderr, "note: grove run -m %s --head %s drafts with it\n", name, command.PlainText(head))
		_, err = fmt.Fprintf(p.Stdout, "%s\n%s\n", path, headPath)
		return err
	}
	for _, n := range offers.Heads {
		fmt.Fprintf(p.Stderr, "note: the head %s drafts for it: grove pull %s --head %[1]s, then add --head %[1]s\n", command.PlainText(n), name)
	}
	for _, n := range offers.Drafts {
		fmt.Fprintf(p.Stderr, "note: the model %s drafts for it: grove pull %[1]s, then add --draft-model %[1]s\n", command.PlainText(n))
	}
	_, err = fmt.Fprintln(p.Stdout, path)
	return err
}

// best stands for the first known head of a model.
const best = "best"

// fetchHead fetches a draft head for the model at a path into the cache: the one that --head names,
// or the first known one that grove runs and that has the model's shape.
func (cmd *pullCmd) fetchHead(ctx context.Context, p *command.Program, c *hub.Client, path string,
	known []string) (name, at string, err error) {
	if cmd.Head != best {
		at, err = fetchHead(ctx, c, cmd.Head, path)
		return cmd.Head, at, err
	}
	for _, name := range known {
		at, err := fetchHead(ctx, c, name, path)
		if err == nil || ctx.Err() != nil {
			return name, at, err
		}
		fmt.Fprintf(p.Stderr, "note: %s is left out: %v\n", command.PlainText(name), err)
	}
	return "", "", fmt.Errorf("--head best: grove knows no head for %s that it can run: name one as ORG/REPO, or train one: grove train eagle -m %[1]s", cmd.Model)
}

// fetchHead fetches a head into the cache, and returns the path to open if the head has the shape
// that the model at a path needs.
func fetchHead(ctx context.Context, c *hub.Client, head, path string) (string, error) {
	name, ok := hub.ParseName(head)
	if !ok {
		return "", fmt.Errorf("%q is not the name of a head: want ORG/REPO, ORG/REPO:TYPE or ORG/REPO:FILE", head)
	}
	_, _, at, err := fetchModel(ctx, c, name)
	if err != nil {
		return "", err
	}
	shape, err := catalog.ReadModel(path)
	if err != nil {
		return "", err
	}
	return at, heads.Check(registry.Head{Name: at}, shape)
}

// fetchModel fetches the missing files of a model into the cache, and returns the path to open.
func fetchModel(ctx context.Context, c *hub.Client, name hub.Name) (l *hub.Listing, m hub.Model, path string, err error) {
	if l, err = c.List(ctx, name.Repo); err != nil {
		return l, m, "", err
	}
	if m, err = hub.Choose(l.Files, name.What); err != nil {
		return l, m, "", fmt.Errorf("%s: %w", name.Repo, err)
	}
	check := func(dir string) error { return checkFolder(c, dir) }
	if m.Path != "." {
		check = nil // clip is the architecture of a projector, which the hub gives for some repositories
		if a := l.Architecture; a != "" && a != "clip" && !model.Runs(a) && !model.IsHead(a) {
			return l, m, "", fmt.Errorf("%s: grove does not run architecture %s", name.Repo, command.PlainText(a))
		}
	}
	path, err = c.Pull(ctx, l, &m, check)
	return l, m, path, err
}

// checkFolder refuses a folder that grove does not run, before its weights are fetched.
func checkFolder(c *hub.Client, dir string) error {
	_, err := model.ReadFolder(dir)
	if errors.Is(err, model.ErrHead) {
		_, err = headfile.ReadFolder(dir)
	} else if err == nil && lower.TokenizerFile(dir) == "" {
		c.Note("there is no tokenizer.json: without a tokenizer a model reads and writes token ids only, and text from a GGUF file; a draft head needs none")
	}
	return err
}

// hubBars show the progress of the stages of a fetch.
type hubBars map[string]*command.Progress

// newHubBars makes a client show progress and notes.
func newHubBars(p *command.Program, c *hub.Client) hubBars {
	bars, last := hubBars{}, ""
	c.Progress = func(stage string, done, total int64) {
		if stage != last {
			bars.end()
		}
		last = stage
		if bars[stage] == nil {
			bars[stage] = p.Progress(stage, true)
		}
		bars[stage].Set(done, total)
	}
	c.Note = func(text string) { fmt.Fprintf(p.Stderr, "note: %s\n", text) }
	return bars
}

func (b hubBars) end() {
	for _, bar := range b {
		bar.End()
	}
}

// parseHubModel parses a model's name and reads the environment.
func parseHubModel(text string) (hub.Name, *hub.Client, error) {
	name, ok := hub.ParseName(text)
	if !ok {
		return name, nil, command.Usagef("%q: want ORG/REPO, ORG/REPO:TYPE or ORG/REPO:FILE", text)
	}
	c, err := hub.FromEnv()
	return name, c, err
}

type listCmd struct{}

func (listCmd) Help() string {
	return `Lists the models in the cache of the hub's tools, whichever tool fetched them: repository, file, type, size and last
use. A line with "incomplete" is an interrupted fetch; grove pull continues it.

Examples:
    grove list
    grove list --json | jq '.[] | select(.type == "Q8_0") | .path'`
}

func (listCmd) Run(p *command.Program) error {
	c, err := hub.FromEnv()
	if err != nil {
		return err
	}
	list, err := c.Entries()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(append([]hub.Entry{}, list...))
	}
	if len(list) == 0 {
		fmt.Fprintf(p.Stderr, "There are no models in %s: grove pull ORG/REPO fetches one.\n", c.Cache)
		return nil
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "repository\tfile\ttype\tsize\tused")
	for _, e := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", command.PlainText(e.Repo), command.PlainText(e.File),
			strings.TrimSpace(e.Type+" "+e.State), command.Size(e.Bytes), e.Used.Format(time.DateTime))
	}
	return t.Flush()
}

type rmCmd struct {
	Model string `arg:"" help:"ORG/REPO for all of it, or with :TYPE or :FILE for one model."`
}

func (rmCmd) Help() string {
	return `Removes a model from the cache, and says how much space that frees. Content that another file shares stays.
Models that other tools fetched can be removed too.

Examples:
    grove rm Qwen/Qwen3-8B-GGUF:Q8_0
    grove rm Qwen/Qwen3-8B-GGUF`
}

func (cmd *rmCmd) Run(p *command.Program) error {
	name, c, err := parseHubModel(cmd.Model)
	if err != nil {
		return err
	}
	freed, err := c.Remove(name)
	if err != nil {
		return fmt.Errorf("%s: %w: grove list shows the models", name, err)
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"model": name.String(), "freed": freed})
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: %s freed\n", name, command.Size(freed))
	return err
}
