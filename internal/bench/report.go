// The report of bench spec: its shape, that programs and tables read.

package bench

import "cmp"

// SpecReport is what Spec found.
type SpecReport struct {
	Setting
	Suites []SuiteReport `json:"suites"`

	Draft       string    `json:"draft_model,omitempty"`
	DraftSize   int64     `json:"draft_parameters,omitempty"`
	Temperature []float32 `json:"temperatures"`
	TopP        float32   `json:"top_p,omitempty"`
	Seeds       []uint64  `json:"seeds"`
	MaxTokens   int       `json:"max_tokens"`
	Repeats     int       `json:"repeats"`
	Chat        bool      `json:"chat,omitempty"`
	IgnoreEnd   bool      `json:"ignore_end,omitempty"`
	Bandwidth   []float64 `json:"bandwidth_gbs,omitempty"` // 10⁹ bytes read a second, before and after each suite
	Interrupted bool      `json:"interrupted,omitempty"`   // it holds what was measured until then
}

// SuiteReport is a suite's part.
type SuiteReport struct {
	Name    string         `json:"name"`
	Methods []MethodReport `json:"methods"`

	About       string  `json:"about,omitempty"`
	Temperature float32 `json:"temperature"`
	Prompts     int     `json:"prompts"` // measured, each once a seed and repeat
	WarmUp      int     `json:"warm_up"` // and left out
	Cut         int     `json:"cut"`     // whose beginning was left out so that they fit the context
	Runs        int     `json:"runs"`    // of each method
	// share of plain decoding's tokens whose last four stand in the prompt, mean over outputs
	Copied float64 `json:"copied_4grams"`
	Forced bool    `json:"forced,omitempty"` // the target was made to write given texts
}

// MethodReport is what a method made of a suite. Speeds are of decoding: tokens after the first,
// over the time from the first to the last. Sums are over all prompts; medians and quartiles over
// the prompts' own figures, each of them the median of its repeats.
type MethodReport struct {
	Name       string  `json:"name"`
	TokensPerS float64 `json:"tokens_per_s"` // all tokens over all time
	Speedup    float64 `json:"speedup"`      // median over prompts of the speed over plain decoding's
	Tau        float64 `json:"tau"`          // tokens committed a pass of the target
	AcceptRate float64 `json:"accept_rate"`  // nodes that the target chose, of those verified
	DraftShare float64 `json:"draft_share"`  // of the time of rounds, that of drafting
	Rounds     int     `json:"rounds"`       // passes of the target after the prompts'
	Mismatches *int    `json:"mismatches"`   // tokens other than plain decoding's; null where they may be others

	Drafter    string `json:"drafter,omitempty"`
	Accept     string `json:"accept,omitempty"`
	Controller bool   `json:"controller"`
	Budget     int    `json:"budget,omitempty"`

	Tokens           int       `json:"tokens"`
	Ended            int       `json:"ended"` // outputs that came to the end of the text
	SpeedupQuartiles Quartiles `json:"speedup_quartiles"`
	SpeedupTotal     float64   `json:"speedup_total"`          // of all tokens over all time
	SpeedQuartiles   Quartiles `json:"tokens_per_s_quartiles"` // over prompts
	WholePerS        float64   `json:"whole_tokens_per_s"`     // all tokens over all time, reading the prompt included
	WholeSpeedup     float64   `json:"whole_speedup"`          // median over prompts of the same
	FirstMS          float64   `json:"ttft_ms"`                // time to first token, median over prompts
	PerTokenMS       float64   `json:"tpot_ms"`                // time per output token after it, median over prompts

	PathLength float64 `json:"path_length"`     // drafted nodes accepted a round, without the bonus token
	Nodes      float64 `json:"nodes_per_round"` // drafted nodes verified a round
	PlainShare float64 `json:"plain_share"`     // rounds that the controller decoded plainly
	DraftMS    float64 `json:"draft_ms"`        // of a round, the mean time of drafting: T_D
	VerifyMS   float64 `json:"verify_ms"`       // of the target's pass: T_M
	RestMS     float64 `json:"rest_ms"`         // of all else
	Predicted  float64 `json:"predicted"`       // speed-up by SpecBlock's Φ; see predict
	Alpha      float64 `json:"alpha"`           // chance that a depth's node is accepted; see model
	DraftCost  float64 `json:"draft_cost"`      // of a round, the time of drafting over that of a plain pass: γc
	Modelled   float64 `json:"modelled"`        // speed-up by JetSpec's Equation 2; see model
	ListSize   float64 `json:"shortlist_size"`  // tokens that the drafter's head computed for a row, mean; 0: not known
	// of the target's choices below drafted rows, those on the row's shortlist
	Coverage float64 `json:"shortlist_coverage"`
	Peak     int64   `json:"peak_bytes,omitempty"`

	Begin     PartReport    `json:"first_128"`
	Rest      PartReport    `json:"rest"`
	Lengths   []PartReport  `json:"lengths"`   // outputs of at least so many tokens, up to there
	Positions []PartReport  `json:"positions"` // by place in the output
	Depths    []DepthReport `json:"depths"`
}

// PartReport is about a part of the outputs, tokens From to To counted from 1.
type PartReport struct {
	From       int     `json:"from"`
	To         int     `json:"to"`
	Prompts    int     `json:"prompts"` // that have tokens there
	Tokens     int     `json:"tokens"`
	Tau        float64 `json:"tau"`
	AcceptRate float64 `json:"accept_rate"`
	PathLength float64 `json:"path_length"`
	TokensPerS float64 `json:"tokens_per_s"`
	Speedup    float64 `json:"speedup"`         // median over prompts
	Repeated   float64 `json:"repeated_4grams"` // share of the tokens whose last four stood in the output before
}

// DepthReport counts nodes at a depth.
type DepthReport struct {
	Depth    int     `json:"depth"`
	Rounds   int     `json:"rounds"` // with a node there
	Tried    int     `json:"tried"`  // of these, with one below the node that was accepted before
	Nodes    int     `json:"nodes"`
	Accepted int     `json:"accepted"`
	Rate     float64 `json:"rate"` // of the rounds, those that accepted one
}

// beginning is the length of the part of an output that is reported apart: text of a small model that goes on for long
// begins to repeat itself.
const beginning = 128

// positionStep is the length of the parts that positions are reported by.
const positionStep = 64

func newSpecReport(o *SpecOptions) *SpecReport {
	r := &SpecReport{
		Setting: NewSetting(o.Target.Model, o.Title, o.ModelName), Suites: []SuiteReport{},
		Temperature: o.Temperatures, TopP: o.Sampling.TopP, Seeds: o.Seeds, MaxTokens: o.MaxTokens, Repeats: o.Repeats,
		Chat: o.Chat, IgnoreEnd: o.IgnoreEnd,
	}
	if d := o.Target.Draft; d != nil {
		r.Draft, r.DraftSize = cmp.Or(o.DraftName, d.Config.Name), d.Config.Parameters()
	}
	return r
}

// Method is the suite's method of a name, nil where there is none.
func (s *SuiteReport) Method(name string) *MethodReport {
	for i := range s.Methods {
		if s.Methods[i].Name == name {
			return &s.Methods[i]
		}
	}
	return nil
}

// Suite is the report's suite of a name, nil where there is none.
func (r *SpecReport) Suite(name string) *SuiteReport {
	for i := range r.Suites {
		if r.Suites[i].Name == name {
			return &r.Suites[i]
		}
	}
	return nil
}
