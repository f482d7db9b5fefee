// What a round's parts predict of the speed, beside the speed that was measured.

package bench

import (
	"regexp"
	"strconv"
)

// predict fills in the speed-ups that SpecBlock's model of the throughput gives: Φ = τ/(T_M + T_D),
// with one T_M for all drafters, as it finds the verifier's time "essentially constant across these
// methods". It is the mean over the suite's drafters. Plain decoding has τ = 1, no T_D and a T_M of
// its own, a pass of one row. What the model leaves out is that passes of other trees cost
// otherwise, and the rest of a round.
func (s *SuiteReport) predict() {
	plain, verify := 0.0, 0.0
	drafters := 0
	for i := range s.Methods {
		if m := &s.Methods[i]; m.Drafter == "" {
			plain = m.VerifyMS
		} else {
			verify += m.VerifyMS
			drafters++
		}
	}
	verify = share(verify, float64(drafters))
	for i := range s.Methods {
		m := &s.Methods[i]
		m.Predicted = 1
		if m.Drafter != "" {
			m.Predicted = m.Tau * share(plain, verify+m.DraftMS)
		}
	}
}

// model fills in the figures of speculative decoding's usual model, which JetSpec's Equations 1 and 2
// state: α, the chance that a node is accepted at each depth alike; γc, the time of drafting as a
// share of a plain pass; and the speed-up that follows if a pass takes as long for a tree as for one
// row, (1 + α + … + α^γ)/(γc + 1). γ is the depth at which the path that is accepted has no more nodes, so
// that α is that of any of a node's children. The speed-up measured is less by what the rows of trees cost.
func (s *SuiteReport) model() {
	plain := s.plain()
	if plain == nil {
		return
	}
	for i := range s.Methods {
		m := &s.Methods[i]
		if m.Drafter == "" || m.Rounds == 0 {
			continue
		}
		accepted, tried := 0, 0
		for _, at := range m.Depths {
			accepted, tried = accepted+at.Accepted, tried+at.Tried
		}
		m.Alpha, m.DraftCost = share(float64(accepted), float64(tried)), share(m.DraftMS, plain.VerifyMS)
		reached := m.Rounds
		tokens, power := 1.0, 1.0
		for _, at := range m.Depths {
			power *= m.Alpha * share(float64(at.Tried), float64(reached))
			tokens += power
			reached = at.Accepted
		}
		m.Modelled = tokens / (m.DraftCost + 1)
	}
}

// publishedDivisor matches the option by which DynaTree's Table 3 divides the tokens of a round.
var publishedDivisor = regexp.MustCompile(`^(dynatree|fixed|linear):(?:.*,)?(d0|d|k)=(\d+)`)

// publishedAccept is the acceptance of DynaTree's Table 3 as its code computes it: tokens of a round over
// D₀ + 2, over the fixed tree's depth + 2, or over a chain's length. It may exceed 1, and methods
// are not comparable by it. Other drafters have none.
func (m *MethodReport) publishedAccept() string {
	match := publishedDivisor.FindStringSubmatch(m.Drafter)
	if match == nil {
		return "–"
	}
	by, _ := strconv.Atoi(match[3])
	if match[1] != "linear" {
		by += 2
	}
	return percent(share(m.Tau, float64(by)))
}
