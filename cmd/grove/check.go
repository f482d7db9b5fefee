package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/check"
)

type checkCmd struct {
	Bits   checkBitsCmd   `cmd:"" help:"Same bits: logits do not depend on how a context was reached."`
	Tokens checkTokensCmd `cmd:"" help:"Same tokens: speculation emits what plain decoding emits."`
}

func (checkCmd) Help() string {
	return `Searches for counterexamples to grove's laws on generated cases: random models, texts, trees,
drafters and options. Nothing is needed but this command. The exit status is 1 when a case
contradicts a law.

Examples:
    grove check bits --cases 10000
    grove check tokens --cases 500 --json`
}

// checkFlags are those of every check.
type checkFlags struct {
	Cases int    `help:"How many cases to generate." default:"1000" placeholder:"N"`
	Seed  uint64 `help:"Seed of the cases." default:"1"`
	Only  int    `help:"Run the case of this number alone, to look at a mismatch again." default:"-1" placeholder:"CASE"`
}

type checkBitsCmd struct {
	checkFlags
}

func (checkBitsCmd) Help() string {
	return `Generates random models (llama, qwen2, qwen3, gptneox; f32, bf16, f16, q8_0 and the K types),
texts and token trees, computes the logits of every node one token a pass, then reaches the same
contexts in other ways: other chunks of the prompt, paths of trees committed, detours truncated,
forks, other node orders, other sequences in the same pass, 1 to 4 threads, every kernel level of
this processor. Every logit must be the same to the bit.

Prints {"cases","mismatches"} and more with --json; the exit status is 1 on any mismatch.

Examples:
    grove check bits --cases 10000 --json
    grove check bits --cases 10000 --only 4711 -v`
}

func (c *checkBitsCmd) Run(p *program) error { return c.run(p, "same bits", check.Bits) }

type checkTokensCmd struct {
	checkFlags
}

func (checkTokensCmd) Help() string {
	return `Generates random models, prompts, sampling options (temperatures, top-k, top-p, min-p, penalties,
biases) and drafters, honest, random and hostile, at random budgets, and decodes each prompt both
plainly and with speculation. Every token must be the same.

Prints {"cases","mismatches"} and more with --json; the exit status is 1 on any mismatch.

Examples:
    grove check tokens --cases 500
    grove check tokens --cases 500 --only 42`
}

func (c *checkTokensCmd) Run(p *program) error { return c.run(p, "same tokens", check.Tokens) }

func (c *checkFlags) run(p *program, law string, f func(context.Context, check.Options) (check.Report, error)) error {
	switch {
	case c.Cases < 1:
		return usagef("--cases %d: want at least 1", c.Cases)
	case c.Only < -1 || c.Only >= c.Cases:
		return usagef("--only %d: want a case from 0 to %d (raise --cases for a later one)", c.Only, c.Cases-1)
	}
	ctx, stop := p.context()
	defer stop()
	bar := p.progress(law, false)
	start := time.Now()
	r, err := f(ctx, check.Options{Cases: c.Cases, Seed: c.Seed, Only: c.Only, Progress: func(done, total int) { bar.set(int64(done), int64(total)) }})
	bar.end()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if p.JSON {
		if jsonErr := p.printJSON(r); jsonErr != nil {
			return jsonErr
		}
	} else {
		fmt.Fprintf(p.stdout, "%s: %d cases", law, r.Cases)
		if r.Tokens > 0 {
			fmt.Fprintf(p.stdout, ", %d tokens", r.Tokens)
		}
		fmt.Fprintf(p.stdout, ", %d mismatches (levels %s; seed %d; %.1fs)\n", r.Mismatches, strings.Join(r.Levels, ", "), c.Seed, time.Since(start).Seconds())
		for _, f := range r.Failures {
			fmt.Fprintln(p.stdout, f)
		}
	}
	switch {
	case err != nil:
		return err // interrupted, with what was done printed
	case r.Mismatches > 0:
		return errFailed
	}
	return nil
}
