package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/lab/check"
)

type checkLengthsCmd struct {
	Model string `short:"m" required:"" env:"GROVE_MODEL" help:"GGUF file, Hugging Face folder, or ORG/REPO that grove pull fetched." placeholder:"FILE" hub:"" group:"Model"`

	command.KVFlag

	From     int      `help:"Shortest prompt, in tokens (${default})." default:"1" placeholder:"N"`
	To       int      `help:"Longest prompt, in tokens (${default})." default:"2500" placeholder:"N"`
	Step     int      `help:"Run one case of N, drawn at random (${default})." default:"1" placeholder:"N"`
	Tokens   int      `short:"n" help:"Tokens to generate after each prompt (${default})." default:"4" placeholder:"N"`
	Workers  []int    `help:"Numbers of threads to run with (${default})." default:"1,2,4" placeholder:"N"`
	Callers  []int    `help:"Numbers of sequences in a pass (${default})." default:"1,8" placeholder:"N"`
	Drafters []string `help:"Drafters that the cases alternate; default: all that need no head." sep:";" placeholder:"NAME"`
	Seed     uint64   `help:"Seed of the text and the cases (${default})." default:"1" placeholder:"N"`
}

func (checkLengthsCmd) Help() string {
	return `Makes a text of random tokens that repeats itself, and reads it one token a pass on one thread. Then it takes the text's
beginning of every length as a prompt, with each number of threads, alone and in a pass with others, and generates a few
tokens with drafters. Every token must be that of plain decoding. A prompt begins with the cached rows of a shorter one:
every fourth case computes the chunks that a prompt alone is read in, the others 64 rows at most.

With --json it prints {"lengths","cases","mismatches",...}. The exit status is 1 on a mismatch.

Examples:
    grove-lab check lengths -m model.gguf --step 10
    grove-lab check lengths -m model.gguf --from 1000 --to 1100 --workers 2 --json`
}

const mostLength = 1 << 20 // of prompts: more than contexts of models that a check can decode

func (c *checkLengthsCmd) Run(p *command.Program) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"--from", c.From}, {"--to", c.To}, {"--step", c.Step}, {"--tokens", c.Tokens}} {
		if f.value < 1 || f.value > mostLength {
			return command.Usagef("%s %d: want 1 to %d", f.name, f.value, mostLength)
		}
	}
	if c.To < c.From {
		return command.Usagef("--to %d: want at least --from, %d", c.To, c.From)
	}
	for _, n := range append(append([]int(nil), c.Workers...), c.Callers...) {
		if n < 1 || n > 64 {
			return command.Usagef("--workers %v and --callers %v: want numbers from 1 to 64", c.Workers, c.Callers)
		}
	}
	kv, err := c.Parse()
	if err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("same tokens at every length", false)
	start := time.Now()
	r, err := check.Lengths(ctx, check.LengthOptions{
		Model: c.Model, KV: kv, From: c.From, To: c.To, Step: c.Step, Tokens: c.Tokens, Threads: c.Workers, Callers: c.Callers,
		Drafters: c.Drafters, Seed: c.Seed, Progress: func(done, total int) { bar.Set(int64(done), int64(total)) },
	})
	bar.End()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if p.JSON {
		if jsonErr := p.PrintJSON(r); jsonErr != nil {
			return jsonErr
		}
	} else {
		fmt.Fprintf(p.Stdout, "same tokens at every length: %d lengths, %d cases of %d sequences, %d rows of prompts, %d tokens, %d mismatches (%.1fs)\n",
			r.Lengths, r.Cases, r.Sequences, r.Rows, r.Tokens, r.Mismatches, time.Since(start).Seconds())
		for _, f := range r.Failures {
			fmt.Fprintln(p.Stdout, f)
		}
	}
	switch {
	case err != nil:
		return err // interrupted, after printing the results so far
	case r.Mismatches > 0:
		return command.ErrFailed
	}
	return nil
}
