// The report of bench spec, in the form that programs and tables read.

package bench

import "cmp"

// SpecReport is the result of Spec.
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
	Bandwidth   []float64 `json:"bandwidth_gbs,omitempty"` // 10⁹ bytes read per second, before and after each suite
	Interrupted bool      `json:"interrupted,omitempty"`   // it has the measurements up to the interruption
}

// SuiteReport is a suite's part.
type SuiteReport struct {
	Name    string         `json:"name"`
	Methods []MethodReport `json:"methods"`

	About       string  `json:"about,omitempty"`
	Temperature float32 `json:"temperature"`
	Prompts     int     `json:"prompts"` // measured, each once per seed and repeat
	WarmUp      int     `json:"warm_up"` // prompts left out
	Cut         int     `json:"cut"`     // prompts whose beginning was cut so that they fit the context
	Runs        int     `json:"runs"`    // of each method
	// fraction of plain decoding's tokens whose last four also occur in the prompt, mean over outputs
	Copied float64 `json:"copied_4grams"`
	Forced bool    `json:"forced,omitempty"` // the target was made to write given texts
}

// MethodReport is the result of a method on a suite. Speeds are of decoding: tokens after the
// first, divided by the time from the first to the last. Sums are over all prompts; medians and
// quartiles are over the prompts' own figures, each of them the median of its repeats.
type MethodReport struct {
	Name       string  `json:"name"`
	TokensPerS float64 `json:"tokens_per_s"` // all tokens divided by all time
	Speedup    float64 `json:"speedup"`      // median over prompts of the speed relative to plain decoding's
	Tau        float64 `json:"tau"`          // tokens committed per pass of the target
	AcceptRate float64 `json:"accept_rate"`  // fraction of verified nodes that the target chose
	DraftShare float64 `json:"draft_share"`  // fraction of the rounds' time spent drafting
	Rounds     int     `json:"rounds"`       // passes of the target after the prompts' passes
	Mismatches *int    `json:"mismatches"`   // tokens that differ from plain decoding's; null if they may differ

	Drafter    string `json:"drafter,omitempty"`
	Accept     string `json:"accept,omitempty"`
	Controller bool   `json:"controller"`
	Budget     int    `json:"budget,omitempty"`

	Tokens           int       `json:"tokens"`
	Ended            int       `json:"ended"` // outputs that reached the end of the text
	SpeedupQuartiles Quartiles `json:"speedup_quartiles"`
	SpeedupTotal     float64   `json:"speedup_total"`          // by all tokens and all time
	SpeedQuartiles   Quartiles `json:"tokens_per_s_quartiles"` // over prompts
	WholePerS        float64   `json:"whole_tokens_per_s"`     // all tokens over all time, with reading the prompt
	WholeSpeedup     float64   `json:"whole_speedup"`          // median over prompts of the same
	FirstMS          float64   `json:"ttft_ms"`                // time to first token, median over prompts
	PerTokenMS       float64   `json:"tpot_ms"`                // time per output token after it, median over prompts

	PathLength float64 `json:"path_length"`     // drafted nodes accepted per round, without the bonus token
	Nodes      float64 `json:"nodes_per_round"` // drafted nodes verified per round
	PlainShare float64 `json:"plain_share"`     // rounds that the controller decoded plainly
	DraftMS    float64 `json:"draft_ms"`        // mean time of drafting per round: T_D
	VerifyMS   float64 `json:"verify_ms"`       // of the target's pass: T_M
	RestMS     float64 `json:"rest_ms"`         // of everything else
	Predicted  float64 `json:"predicted"`       // speed-up by SpecBlock's Φ; see predict
	Alpha      float64 `json:"alpha"`           // chance that the node at a depth is accepted; see model
	DraftCost  float64 `json:"draft_cost"`      // time of drafting in a round relative to a plain pass: γc
	Modelled   float64 `json:"modelled"`        // speed-up by JetSpec's Equation 2; see model
	ListSize   float64 `json:"shortlist_size"`  // tokens that the drafter's head computed per row, mean; 0: not known
	// fraction of the target's choices, below drafted rows, that were on the row's shortlist
	Coverage float64 `json:"shortlist_coverage"`
	Peak     int64   `json:"peak_bytes,omitempty"`

	Begin     PartReport    `json:"first_128"`
	Rest      PartReport    `json:"rest"`
	Lengths   []PartReport  `json:"lengths"`   // outputs of at least this many tokens, up to there
	Positions []PartReport  `json:"positions"` // by position in the output
	Depths    []DepthReport `json:"depths"`
}

// PartReport is about a part of the outputs, tokens From to To, counted from 1.
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
	Repeated   float64 `json:"repeated_4grams"` // fraction of tokens whose last four occurred earlier in the output
}

// DepthReport counts nodes at a depth.
type DepthReport struct {
	Depth    int     `json:"depth"`
	Rounds   int     `json:"rounds"` // with a node there
	Tried    int     `json:"tried"`  // of these, those with a child of the node accepted before
	Nodes    int     `json:"nodes"`
	Accepted int     `json:"accepted"`
	Rate     float64 `json:"rate"` // fraction of the rounds that accepted one
}

// beginning is the length of the part of an output that is reported separately: long texts of a
// small model begin to repeat themselves.
const beginning = 128

// positionStep is the length of the parts that positions are reported in.
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

// Method returns the suite's method with a name, or nil if there is none.
func (s *SuiteReport) Method(name string) *MethodReport {
	return find(s.Methods, func(m *MethodReport) bool { return m.Name == name })
}

// Suite returns the report's suite with a name, or nil if there is none.
func (r *SpecReport) Suite(name string) *SuiteReport {
	return find(r.Suites, func(s *SuiteReport) bool { return s.Name == name })
}

// find returns the first element that is the one asked for, or nil.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
