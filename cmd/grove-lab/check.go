package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/lab/check"
)

type checkCmd struct {
	Bits   checkBitsCmd   `cmd:"" help:"Check that logits do not depend on how a context was computed."`
	Tokens checkTokensCmd `cmd:"" help:"Check that speculation gives the tokens of plain decoding."`
	Serve  checkServeCmd  `cmd:"" help:"Check that requests that run together get the tokens that each gets alone."`

	Lengths checkLengthsCmd `cmd:"" help:"Check that prompts of every length get the tokens of plain decoding, for a model's file."`
}

func (checkCmd) Help() string {
	return `Searches for cases that break grove's laws, among random models, texts, trees, drafters and options. The exit
status is 1 when it finds one.

Examples:
    grove-lab check bits --cases 10000
    grove-lab check tokens --cases 500 --json`
}

// checkFlags are the flags of every check.
type checkFlags struct {
	Cases int    `help:"Cases to generate (${default})." default:"1000" placeholder:"N"`
	Seed  uint64 `help:"Seed of the cases (${default})." default:"1" placeholder:"N"`
	Only  int    `help:"Run only this case, to reproduce a mismatch." default:"-1" placeholder:"CASE"`
}

type checkBitsCmd struct {
	checkFlags
}

func (checkBitsCmd) Help() string {
	return `Computes the logits of random models on random trees, one token a pass. Then it computes them in other ways: other
chunks of the prompt, other trees and node orders, committed and discarded branches, other sequences in the pass, 1
to 4 threads, every kernel level. Every logit must be the same to the bit.

With --json it prints {"cases","mismatches",...}. The exit status is 1 on a mismatch.

Examples:
    grove-lab check bits --cases 10000 --json
    grove-lab check bits --cases 10000 --only 4711 -v`
}

func (c *checkBitsCmd) Run(p *command.Program) error { return c.run(p, "same bits", check.Bits) }

type checkTokensCmd struct {
	checkFlags
}

func (checkTokensCmd) Help() string {
	return `Decodes random prompts with random models, sampling options, drafters and budgets, plainly and with speculation.
Every token must be the same.

With --json it prints {"cases","mismatches",...}. The exit status is 1 on a mismatch.

Examples:
    grove-lab check tokens --cases 500
    grove-lab check tokens --cases 500 --only 42`
}

func (c *checkTokensCmd) Run(p *command.Program) error { return c.run(p, "same tokens", check.Tokens) }

type checkServeCmd struct {
	checkFlags
}

func (checkServeCmd) Help() string {
	return `Runs random requests over random models in one engine: with drafters, sampling options, tenants and priorities of their own,
prompts that begin alike, little memory, and callers that leave. Every request must get the tokens of plain decoding
alone. The order of events depends on the clock.

With --json it prints {"cases","mismatches",...}. The exit status is 1 on a mismatch.

Examples:
    grove-lab check serve --cases 500
    grove-lab check serve --cases 10000 --json`
}

func (c *checkServeCmd) Run(p *command.Program) error {
	return c.run(p, "same tokens together", check.Serve)
}

// mostCases take months.
const mostCases = 100_000_000

func (c *checkFlags) run(p *command.Program, law string, f func(context.Context,
	check.Options) (check.Report, error)) error {
	switch {
	case c.Cases < 1 || c.Cases > mostCases:
		return command.Usagef("--cases %d: want 1 to %d", c.Cases, mostCases)
	case c.Only < -1 || c.Only >= c.Cases:
		return command.Usagef("--only %d: want a case from 0 to %d (raise --cases for a later one)", c.Only, c.Cases-1)
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress(law, false)
	start := time.Now()
	r, err := f(ctx, check.Options{Cases: c.Cases, Seed: c.Seed, Only: c.Only, Progress: func(done, total int) {
		bar.Set(int64(done), int64(total))
	}})
	bar.End()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if p.JSON {
		if jsonErr := p.PrintJSON(r); jsonErr != nil {
			return jsonErr
		}
	} else {
		fmt.Fprintf(p.Stdout, "%s: %d cases", law, r.Cases)
		if r.Tokens > 0 {
			fmt.Fprintf(p.Stdout, ", %d tokens", r.Tokens)
		}
		fmt.Fprintf(p.Stdout, ", %d mismatches (levels %s; seed %d; %.1fs)\n", r.Mismatches, strings.Join(r.Levels, ", "),
			c.Seed, time.Since(start).Seconds())
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
