package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/sample"
)

type benchMemoryCmd struct {
	command.ModelFlags

	Method      string  `arg:"" help:"plain, or a drafter with its options."`
	Prompt      string  `help:"JSONL file, whose first prompt is decoded." required:"" placeholder:"FILE"`
	MaxTokens   int     `short:"n" help:"Generate at most N tokens (${default})." default:"256" placeholder:"N"`
	Temperature float32 `short:"t" help:"0 takes the most probable token; 0 to 100." default:"0" placeholder:"T"`
	TopP        float32 `help:"Sample from the fewest tokens with total probability P, 0 to 1." default:"1" placeholder:"P"`
	Seed        uint64  `help:"Sampling seed." default:"0" placeholder:"N"`
	IgnoreEnd   bool    `help:"Continue past the model's end-of-text token."`
	Chat        bool    `help:"Put the prompt into the model's chat template."`
}

func (benchMemoryCmd) Help() string {
	return `Decodes one prompt and prints the largest resident memory of this process: weights, caches, buffers and program,
without loading. grove bench spec --peak-memory does this for each of its methods.

Examples:
    grove bench memory plain --prompt prompts.jsonl
    grove bench memory dynatree --prompt prompts.jsonl --pad 500M --json`
}

func (cmd *benchMemoryCmd) Run(p *command.Program) error {
	if cmd.MaxTokens < 1 {
		return command.Usagef("--max-tokens %d: want at least 1", cmd.MaxTokens)
	}
	params := sample.Params{Temperature: cmd.Temperature, TopP: cmd.TopP, Seed: cmd.Seed}
	if err := params.Validate(); err != nil {
		return err
	}
	m, err := bench.ParseMethod(cmd.Method, bench.Method{})
	if err != nil {
		return command.Usagef("method %q: %w", cmd.Method, err)
	}
	if _, err := os.Stat(cmd.Prompt); err != nil {
		return err
	}
	suite, err := bench.OpenSuite(cmd.Prompt, bench.SuiteOptions{N: 1})
	if err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	target, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer target.Close()
	r, err := bench.Memory(ctx, bench.SpecOptions{
		Target: inside.Target(target), Runs: []bench.SpecRun{{Suite: suite, Methods: []bench.Method{m}}},
		Sampling: params, MaxTokens: cmd.MaxTokens, IgnoreEnd: cmd.IgnoreEnd, Chat: cmd.Chat,
	})
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: at most %s resident while decoding %d tokens, %s before\n", r.Method,
		command.Size(r.Peak), r.Tokens, command.Size(r.Loaded))
	return err
}

// memoryOf returns a function that measures a method in a process of its own: this program as grove bench memory.
func (cmd *benchSpecCmd) memoryOf(p *command.Program) func(context.Context, sample.Params, bench.Method,
	bench.Prompt) (int64, error) {
	return func(ctx context.Context, params sample.Params, m bench.Method, prompt bench.Prompt) (int64, error) {
		dir, err := os.MkdirTemp("", "grove-bench-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "prompt.jsonl")
		if err := bench.WritePrompt(file, prompt); err != nil {
			return 0, err
		}
		return cmd.memoryChild(ctx, p, params, m, file, cmd.Chat && prompt.Question)
	}
}

// memoryChild runs this program as grove bench memory and returns the peak.
func (cmd *benchSpecCmd) memoryChild(ctx context.Context, p *command.Program, params sample.Params, m bench.Method,
	prompt string, chat bool) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	args := []string{"--json", "bench", "memory", "--prompt", prompt}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	add("threads", fmt.Sprint(p.Threads))
	add("cpu", p.CPU)
	add("model", cmd.Model)
	add("draft-model", cmd.DraftModel)
	for _, h := range cmd.Head {
		add("head", h)
	}
	add("context", fmt.Sprint(cmd.Context))
	add("kv", cmd.KV)
	add("pad", cmd.Pad)
	add("pad-type", cmd.PadType)
	add("pad-experts", cmd.PadExperts)
	add("max-tokens", fmt.Sprint(cmd.MaxTokens))
	add("temperature", fmt.Sprint(params.Temperature))
	add("top-p", fmt.Sprint(params.TopP))
	add("seed", fmt.Sprint(params.Seed))
	if cmd.IgnoreEnd {
		args = append(args, "--ignore-end")
	}
	if chat {
		args = append(args, "--chat")
	}
	var out, problem bytes.Buffer
	child := exec.CommandContext(ctx, self, append(args, "--", m.String())...)
	child.Stdout, child.Stderr = &out, &problem
	if err := child.Run(); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("grove bench memory: %w: %s", err, strings.TrimSpace(problem.String()))
	}
	var r bench.MemoryReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return 0, fmt.Errorf("grove bench memory: %w", err)
	}
	return r.Peak, nil
}
