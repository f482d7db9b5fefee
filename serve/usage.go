package serve

import (
	"strings"
	"time"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
)

// usage counts tokens as OpenAI does.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`

	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
		Accepted  int `json:"accepted_prediction_tokens"`
		Rejected  int `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

// usage counts a prompt once, however many choices it has. A cached token was cached for all
// choices. For choices in progress it counts the tokens so far.
func (a *answering) usage() *usage {
	u := &usage{}
	for i := range a.call.prompts {
		prompt := a.call.prompts[i].tokens
		u.Prompt += len(prompt)
		cached := len(prompt)
		for j := range a.call.n {
			r := a.choices[i*a.call.n+j].result
			if r == nil {
				cached = 0
				break
			}
			cached = min(cached, r.Stats.Reused)
		}
		u.PromptDetails.Cached += cached
	}
	for i := range a.choices {
		r := a.choices[i].result
		if r == nil {
			u.Completion += a.choices[i].tokens
			continue
		}
		if !a.call.none {
			u.Completion += len(r.Tokens)
			u.CompletionDetails.Reasoning += a.call.reasoningTokens(r.Tokens)
		}
		if predicted := a.call.request.PredictTokens; len(predicted) > 0 {
			found := common(predicted[:min(len(predicted), a.call.model.Context())], r.Tokens)
			u.CompletionDetails.Accepted += found
			u.CompletionDetails.Rejected += len(predicted) - found
		}
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// reasoningTokens counts the tokens of an answer's reasoning, with the marks around it. Tokens of a call that ends it
// are not among them.
func (c *call) reasoningTokens(tokens []int32) (n int) {
	if !c.request.Reasoning {
		return 0
	}
	r := c.newReader()
	r.tools = nil
	r.verbatim = false
	r.reasoning = true
	decode := c.newDecoder(true)
	for i, token := range tokens {
		before := r.state
		p := r.add(decode(token), false)
		switch {
		case r.state == inContent && r.reasoning:
			return 0
		case !r.reasoning && p.reasoning == "" && r.opens != "" && strings.HasPrefix(p.content, r.opens):
			return n
		case !r.reasoning:
			return i + 1
		case p.reasoning != "" || r.held == "" || r.state != before:
			n = i + 1
		}
	}
	if r.state != inReasoning {
		return 0
	}
	return len(tokens)
}

// common is the length of the longest common subsequence of a and b, by Hyyrö's bit-parallel
// algorithm (2004): bit i of row says that a[:i+1] has no longer one with the part of b so far than
// a[:i] has.
func common(a, b []int32) int {
	places := map[int32][]int{}
	for i, token := range a {
		places[token] = append(places[token], i)
	}
	words := (len(a) + 63) / 64
	row, match := make([]uint64, words), make([]uint64, words)
	for i := range row {
		row[i] = ^uint64(0)
	}
	for _, token := range b {
		for _, i := range places[token] {
			match[i/64] |= 1 << (i % 64)
		}
		carry := uint64(0)
		for i, v := range row {
			u := v & match[i]
			sum := v + u
			next := sum + carry
			if sum < v || next < sum {
				carry = 1
			} else {
				carry = 0
			}
			row[i] = next | (v - u)
			match[i] = 0
		}
	}
	n := 0
	for i := range a {
		if row[i/64]>>(i%64)&1 == 0 {
			n++
		}
	}
	return n
}

// stats returns the sum of the statistics of all choices.
func (a *answering) stats() (all speculate.Stats) {
	for i := range a.choices {
		s := inside.Stats(a.choices[i].result)
		all.Add(s)
		all.Decode += s.Decode
	}
	return all
}

// timings are in milliseconds, under the names of llama.cpp's server. Those of several choices are summed.
type timings struct {
	Cached          int     `json:"cache_n"`
	Prompt          int     `json:"prompt_n"`
	PromptTime      float64 `json:"prompt_ms"`
	PromptPerToken  float64 `json:"prompt_per_token_ms"`
	PromptPerSecond float64 `json:"prompt_per_second"`
	Tokens          int     `json:"predicted_n"`
	Time            float64 `json:"predicted_ms"`
	PerToken        float64 `json:"predicted_per_token_ms"`
	PerSecond       float64 `json:"predicted_per_second"`
	Drafted         int     `json:"draft_n"`
	Accepted        int     `json:"draft_n_accepted"`
}

func (a *answering) timings() *timings {
	s := a.stats()
	if a.call.none {
		s.Tokens = 0
	}
	t := &timings{Cached: s.Reused, Prompt: s.Prompt - s.Reused, PromptTime: ms(s.Prefill), Tokens: s.Tokens,
		Time: ms(s.Decode), Drafted: s.Drafted, Accepted: s.Accepted}
	t.PromptPerToken, t.PromptPerSecond = over(t.PromptTime, t.Prompt), perSecond(t.Prompt, s.Prefill)
	later := s.Tokens - len(a.choices) // the first token of each choice comes with its prompt
	t.PerToken, t.PerSecond = over(t.Time, later), perSecond(later, s.Decode)
	return t
}

// ms returns milliseconds, to three decimal places.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func over(x float64, n int) float64 {
	if n <= 0 {
		return 0
	}
	return x / float64(n)
}

func perSecond(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// metric is vLLM's report about a request.
type metric struct {
	Speculation speculation `json:"speculative_decoding"`
}

// speculation counts the rounds that verified drafted tokens. For trees it counts all nodes verified.
type speculation struct {
	MeanLength float64 `json:"mean_acceptance_length"` // tokens of such a round, including the model's own
	Rate       float64 `json:"draft_acceptance_rate"`
	Histogram  []int   `json:"acceptance_histogram"` // how many rounds accepted 0, 1, 2 … drafted tokens
	Steps      int     `json:"num_spec_steps"`
	Drafted    int     `json:"num_draft_tokens"`
	Accepted   int     `json:"num_accepted_tokens"`
}

// metric returns nil if nothing was to be drafted.
func (a *answering) metric() *metric {
	if d := a.call.request.Drafter; d == "" || d == registry.Plain {
		return nil
	}
	s := a.stats()
	m := speculation{Rate: s.AcceptRate(), Steps: s.Rounds - s.Plain, Drafted: s.Drafted, Accepted: s.Accepted}
	m.MeanLength = 1 + over(float64(s.Accepted), m.Steps)
	reached := m.Steps // rounds that accepted at least this many
	for _, d := range s.Depths {
		m.Histogram = append(m.Histogram, reached-d.Accepted)
		reached = d.Accepted
	}
	m.Histogram = append(m.Histogram, reached)
	return &metric{m}
}
