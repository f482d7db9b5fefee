package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
)

// comparison is a request decoded with its drafter and plainly, taking turns.
type comparison struct {
	Drafted   *grove.Result // the median of its runs, by time
	Plain     *grove.Result
	Runs      int // of each
	Different int // the first token that differs; -1 for none

	Sampled bool // by a rule under which the tokens are another sample: they may differ
}

// speedup compares the times per token. It is 0 if there were none.
func (c *comparison) speedup() float64 {
	if inside.Stats(c.Drafted).PerToken() == 0 {
		return 0
	}
	return inside.Stats(c.Plain).PerToken().Seconds() / inside.Stats(c.Drafted).PerToken().Seconds()
}

// comparing is roughly how long a comparison may take: short runs vary a lot, so they are repeated within this time.
const (
	comparing = 10 * time.Second
	mostRuns  = 5
)

// generator generates for a prompt.
type generator func(context.Context, grove.Request) iter.Seq2[grove.Chunk, error]

// compare decodes the request plainly, and, if that takes little time, both ways several times, taking turns.
// first is the drafted run that the user saw; if texts are kept, further runs would find that run's text.
func compare(ctx context.Context, p *command.Program, generate generator, r grove.Request,
	first *grove.Result, kept bool) (*comparison, error) {
	c := &comparison{Runs: mostRuns, Different: -1}
	c.Sampled = inside.RequestOptionsOf(&r).Accept == "rejection" && r.Sampling.Temperature > 0
	if one := inside.Stats(first).Prefill + inside.Stats(first).Decode; one > 0 {
		c.Runs = min(max(int(comparing/(2*one)), 1), mostRuns)
	}
	if kept {
		c.Runs = 1
	}
	bar := p.Progress("comparing with plain decoding", false)
	defer bar.End()
	more := inside.RequestOptionsOf(&r)
	more.OnRound, more.FreshPrompt = nil, true
	plainly := r
	plainly.Drafter, plainly.Predict = registry.Plain, ""
	inside.RequestOptionsOf(&plainly).Accept = ""
	drafted, plain := []*grove.Result{first}, []*grove.Result(nil)
	for i := range c.Runs {
		result, err := grove.Collect(generate(ctx, plainly))
		if err != nil {
			return nil, err
		}
		plain = append(plain, result)
		if at := differ(first.Tokens, result.Tokens); at >= 0 && c.Different < 0 && !c.Sampled {
			c.Different = at
		}
		if c.Runs > 1 {
			if result, err = grove.Collect(generate(ctx, r)); err != nil {
				return nil, err
			}
			drafted = append(drafted, result)
		}
		bar.Set(int64(i+1), int64(c.Runs))
	}
	if c.Runs > 1 {
		drafted = drafted[1:] // the first run's time includes printing
	}
	c.Drafted, c.Plain = medianRun(drafted), medianRun(plain)
	return c, nil
}

// differ returns the first position where a and b differ, or -1.
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
	slices.SortFunc(rs, func(a, b *grove.Result) int { return int(inside.Stats(a).Decode - inside.Stats(b).Decode) })
	return rs[len(rs)/2]
}

// perSecond returns the speed of decoding, without reading the prompt.
func perSecond(s *speculate.Stats) float64 {
	if s.PerToken() == 0 {
		return 0
	}
	return 1 / s.PerToken().Seconds()
}

// printStats writes the figures for a person. name is the model's.
func printStats(w io.Writer, name string, r *grove.Result, c *comparison) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	s := inside.Stats(r)
	if c != nil {
		s = inside.Stats(c.Drafted)
	}
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(" (%d of them in the cache already)", s.Reused)
	}
	line("model", "%s", name)
	line("prompt", "%d tokens%s in %.3f s, %.0f tokens/s", s.Prompt, reused, s.Prefill.Seconds(),
		float64(s.Prompt-s.Reused)/s.Prefill.Seconds())
	speed := ""
	if s.PerToken() > 0 {
		speed = fmt.Sprintf(", %.1f tokens/s", perSecond(s))
	}
	line("generated", "%s%s; ended by %s", several(s.Tokens, "token"), speed, finishText(r))
	latency := fmt.Sprintf("the first token after %.1f ms (TTFT)", ms(s.First))
	if s.PerToken() > 0 {
		latency += fmt.Sprintf(", then one every %.2f ms (TPOT)", ms(s.PerToken()))
	}
	line("latency", "%s", latency)
	plain := ""
	if s.Plain > 0 {
		plain = fmt.Sprintf("; %d decoded plainly, where drafts did not pay", s.Plain)
	}
	line("rounds", "%d, each committing τ = %.2f tokens%s", s.Rounds, s.Tau(), plain)
	if s.Proposed > 0 {
		line("drafted", "%d nodes, of which %d were verified, %.1f a round", s.Proposed, s.Drafted, s.NodesPerRound())
		line("accepted", "%d nodes, %.0f%% of those verified; paths of %.2f a round", s.Accepted,
			100*s.AcceptRate(), s.PathLength())
	}
	if all := (s.Draft + s.Verify + s.Rest).Seconds(); all > 0 {
		share := func(d time.Duration) float64 { return 100 * d.Seconds() / all }
		line("time", "%.1f%% drafting, %.1f%% verifying, %.1f%% the rest", share(s.Draft), share(s.Verify), share(s.Rest))
	}
	if c != nil {
		if inside.Stats(c.Plain).PerToken() > 0 {
			line("plain decoding", "%.1f tokens/s", perSecond(inside.Stats(c.Plain)))
		}
		same := "the same tokens"
		switch {
		case c.Sampled:
			same = "another sample (--accept rejection)"
		case c.Different >= 0:
			same = fmt.Sprintf("DIFFERENT tokens from token %d on", c.Different)
		}
		speedup := fmt.Sprintf("%.2f × plain decoding", c.speedup())
		if c.speedup() == 0 {
			speedup = "none to measure in " + several(inside.Stats(c.Drafted).Tokens, "token")
		}
		if c.Runs > 1 {
			same += fmt.Sprintf(" (medians of %d runs each, in turn)", c.Runs)
		}
		line("speed-up", "%s, %s", speedup, same)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printDepths(w, s)
}

// printDepths writes the fate of nodes by their depth.
func printDepths(w io.Writer, s *speculate.Stats) error {
	if s.Drafted == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\ndepth\trounds\tnodes\taccepted\tof rounds\t\n")
	for i, d := range s.Depths {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%.0f%%\t\n", i+1, d.Offered, d.Drafted, d.Accepted,
			100*float64(d.Accepted)/float64(max(d.Offered, 1)))
	}
	return t.Flush()
}

func ms(d time.Duration) float64 { return 1000 * d.Seconds() }

func finishText(r *grove.Result) string {
	switch r.Finish {
	case grove.FinishEnd:
		return "the model"
	case grove.FinishStop:
		if r.Stop == "" {
			return "the grammar, which allows nothing further"
		}
		return fmt.Sprintf("the stop string %q", r.Stop)
	case grove.FinishLength:
		return "--max-tokens"
	}
	return "the end of the context"
}

// statsJSON are the figures for a program.
type statsJSON struct {
	PromptTokens  int         `json:"prompt_tokens"`
	Reused        int         `json:"reused_tokens"`
	Tokens        int         `json:"tokens"`
	Rounds        int         `json:"rounds"`
	PlainRounds   int         `json:"plain_rounds"`
	Tau           float64     `json:"tau"`
	Proposed      int         `json:"proposed"` // nodes
	Drafted       int         `json:"drafted"`  // verified nodes
	Accepted      int         `json:"accepted"`
	AcceptRate    float64     `json:"accept_rate"`
	NodesPerRound float64     `json:"nodes_per_round"`
	PathLength    float64     `json:"path_length"`
	Depths        []depthJSON `json:"depths"`
	TokensPerS    float64     `json:"tokens_per_s"`
	FirstS        float64     `json:"first_token_s"`
	PerTokenS     float64     `json:"per_token_s"`
	PrefillS      float64     `json:"prefill_s"`
	DecodeS       float64     `json:"decode_s"`
	DraftShare    float64     `json:"draft_share"`
	DraftS        float64     `json:"draft_s"`
	VerifyS       float64     `json:"verify_s"`
	RestS         float64     `json:"rest_s"`
}

// depthJSON counts nodes at one depth. The first depth is 1.
type depthJSON struct {
	Rounds   int `json:"rounds"` // rounds whose tree had a node there
	Drafted  int `json:"drafted"`
	Accepted int `json:"accepted"`
}

func figures(s *speculate.Stats) *statsJSON {
	f := &statsJSON{
		PromptTokens: s.Prompt, Reused: s.Reused, Tokens: s.Tokens, Rounds: s.Rounds, PlainRounds: s.Plain, Tau: s.Tau(),
		Proposed: s.Proposed, Drafted: s.Drafted, Accepted: s.Accepted, AcceptRate: s.AcceptRate(), TokensPerS: perSecond(s),
		NodesPerRound: s.NodesPerRound(), PathLength: s.PathLength(), Depths: []depthJSON{},
		FirstS: s.First.Seconds(), PerTokenS: s.PerToken().Seconds(), PrefillS: s.Prefill.Seconds(),
		DecodeS:    s.Decode.Seconds(),
		DraftShare: s.DraftShare(), DraftS: s.Draft.Seconds(), VerifyS: s.Verify.Seconds(), RestS: s.Rest.Seconds(),
	}
	for _, d := range s.Depths {
		f.Depths = append(f.Depths, depthJSON{d.Offered, d.Drafted, d.Accepted})
	}
	return f
}

// done is the last line of a run with --json.
type done struct {
	Done       bool         `json:"done"`
	Finish     grove.Finish `json:"finish"`
	Stop       string       `json:"stop,omitempty"`
	Padding    int64        `json:"padding,omitempty"` // padding parameters of the model
	Stats      *statsJSON   `json:"stats,omitempty"`
	Plain      *statsJSON   `json:"plain,omitempty"`
	Speedup    float64      `json:"speedup,omitempty"`
	SameTokens *bool        `json:"same_tokens,omitempty"`
}

func doneLine(r *grove.Result, c *comparison, stats bool, padding int64) done {
	d := done{Done: true, Finish: r.Finish, Stop: r.Stop, Padding: padding}
	if stats {
		d.Stats = figures(inside.Stats(r))
	}
	if c != nil {
		d.Stats, d.Plain = figures(inside.Stats(c.Drafted)), figures(inside.Stats(c.Plain))
		d.Speedup = c.speedup()
		if !c.Sampled {
			d.SameTokens = new(c.Different < 0)
		}
	}
	return d
}
