package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/grovellm/grove"
)

// comparison is a request decoded with its drafter and plainly, in turn.
type comparison struct {
	Drafted   *grove.Result // the median of its runs, by time
	Plain     *grove.Result
	Runs      int // of each
	Different int // the first token that differs; -1 for none
}

func (c *comparison) speedup() float64 {
	return c.Plain.Stats.Decode.Seconds() / c.Drafted.Stats.Decode.Seconds()
}

// comparing is about how long a comparison may take: short runs vary much, so they are repeated within it.
const (
	comparing = 10 * time.Second
	mostRuns  = 5
)

// compare decodes the request plainly, and, where that takes little time, both ways several times in turn. first is the drafted
// run that the user saw.
func compare(ctx context.Context, p *program, m *grove.Model, tokens []int32, r grove.Request, first *grove.Result) (*comparison, error) {
	c := &comparison{Runs: mostRuns, Different: -1}
	if one := first.Stats.Prefill + first.Stats.Decode; one > 0 {
		c.Runs = min(max(int(comparing/(2*one)), 1), mostRuns)
	}
	bar := p.progress("comparing with plain decoding", false)
	defer bar.end()
	r.OnRound = nil
	plainly := r
	plainly.Drafter, plainly.Predict = "none", ""
	drafted, plain := []*grove.Result{first}, []*grove.Result(nil)
	for i := range c.Runs {
		result, err := grove.Collect(m.GenerateTokens(ctx, tokens, plainly))
		if err != nil {
			return nil, err
		}
		plain = append(plain, result)
		if at := differ(first.Tokens, result.Tokens); at >= 0 && c.Different < 0 {
			c.Different = at
		}
		if c.Runs > 1 {
			if result, err = grove.Collect(m.GenerateTokens(ctx, tokens, r)); err != nil {
				return nil, err
			}
			drafted = append(drafted, result)
		}
		bar.set(int64(i+1), int64(c.Runs))
	}
	if c.Runs > 1 {
		drafted = drafted[1:] // the first one's time includes printing
	}
	c.Drafted, c.Plain = medianRun(drafted), medianRun(plain)
	return c, nil
}

// differ is the first place where a and b differ, -1 for none.
func differ(a, b []int32) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func medianRun(rs []*grove.Result) *grove.Result {
	slices.SortFunc(rs, func(a, b *grove.Result) int { return int(a.Stats.Decode - b.Stats.Decode) })
	return rs[len(rs)/2]
}

// perSecond is the speed of decoding, reading the prompt left out.
func perSecond(s *grove.Stats) float64 {
	if s.PerToken() == 0 {
		return 0
	}
	return 1 / s.PerToken().Seconds()
}

// printStats writes the figures for a person.
func printStats(w io.Writer, r *grove.Result, c *comparison) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	s := &r.Stats
	if c != nil {
		s = &c.Drafted.Stats
	}
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(" (%d of them in the cache already)", s.Reused)
	}
	line("prompt", "%d tokens%s in %.3f s, %.0f tokens/s", s.Prompt, reused, s.Prefill.Seconds(), float64(s.Prompt-s.Reused)/s.Prefill.Seconds())
	line("generated", "%d tokens, the first after %.3f s, then %.1f tokens/s; ended by %s", s.Tokens, s.First.Seconds(), perSecond(s), finishText(r))
	line("passes", "%d, each committing τ = %.2f tokens", s.Rounds, s.Tau())
	if s.Drafted > 0 {
		line("drafted", "%d nodes, %.1f a pass; %d accepted, %.0f%%", s.Drafted, float64(s.Drafted)/float64(s.Rounds), s.Accepted, 100*s.AcceptRate())
	}
	if all := (s.Draft + s.Verify + s.Rest).Seconds(); all > 0 {
		share := func(d time.Duration) float64 { return 100 * d.Seconds() / all }
		line("time", "%.1f%% drafting, %.1f%% verifying, %.1f%% the rest", share(s.Draft), share(s.Verify), share(s.Rest))
	}
	if c != nil {
		line("plain decoding", "%.1f tokens/s", perSecond(&c.Plain.Stats))
		same := "the same tokens"
		if c.Different >= 0 {
			same = fmt.Sprintf("DIFFERENT tokens from number %d on", c.Different)
		}
		line("speed-up", "%.2f × plain decoding, %s%s", c.speedup(), same, runsText(c.Runs))
	}
	return t.Flush()
}

func runsText(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (medians of %d runs each, in turn)", n)
}

func finishText(r *grove.Result) string {
	switch r.Finish {
	case grove.FinishEnd:
		return "the model"
	case grove.FinishStop:
		return fmt.Sprintf("the stop string %q", r.Stop)
	case grove.FinishLength:
		return "--max-tokens"
	}
	return "the end of the context"
}

// statsJSON are the figures for a program.
type statsJSON struct {
	PromptTokens int     `json:"prompt_tokens"`
	Reused       int     `json:"reused_tokens"`
	Tokens       int     `json:"tokens"`
	Rounds       int     `json:"rounds"`
	Tau          float64 `json:"tau"`
	Drafted      int     `json:"drafted"`
	Accepted     int     `json:"accepted"`
	AcceptRate   float64 `json:"accept_rate"`
	TokensPerS   float64 `json:"tokens_per_s"`
	FirstS       float64 `json:"first_token_s"`
	PrefillS     float64 `json:"prefill_s"`
	DecodeS      float64 `json:"decode_s"`
	DraftS       float64 `json:"draft_s"`
	VerifyS      float64 `json:"verify_s"`
	RestS        float64 `json:"rest_s"`
}

func figures(s *grove.Stats) *statsJSON {
	return &statsJSON{
		PromptTokens: s.Prompt, Reused: s.Reused, Tokens: s.Tokens, Rounds: s.Rounds, Tau: s.Tau(),
		Drafted: s.Drafted, Accepted: s.Accepted, AcceptRate: s.AcceptRate(), TokensPerS: perSecond(s),
		FirstS: s.First.Seconds(), PrefillS: s.Prefill.Seconds(), DecodeS: s.Decode.Seconds(),
		DraftS: s.Draft.Seconds(), VerifyS: s.Verify.Seconds(), RestS: s.Rest.Seconds(),
	}
}

// done is the last line of a run with --json.
type done struct {
	Done       bool         `json:"done"`
	Finish     grove.Finish `json:"finish"`
	Stop       string       `json:"stop,omitempty"`
	Stats      *statsJSON   `json:"stats,omitempty"`
	Plain      *statsJSON   `json:"plain,omitempty"`
	Speedup    float64      `json:"speedup,omitempty"`
	SameTokens *bool        `json:"same_tokens,omitempty"`
}

func doneLine(r *grove.Result, c *comparison, stats bool) done {
	d := done{Done: true, Finish: r.Finish, Stop: r.Stop}
	if stats {
		d.Stats = figures(&r.Stats)
	}
	if c != nil {
		same := c.Different < 0
		d.Stats, d.Plain, d.Speedup, d.SameTokens = figures(&c.Drafted.Stats), figures(&c.Plain.Stats), c.speedup(), &same
	}
	return d
}
