// The speed that a round's parts predict, compared with the measured speed.

package bench

import (
	"regexp"
	"strconv"
)

// predict fills in the speed-ups by SpecBlock's model of the throughput: Φ = τ/(T_M + T_D), with
// one T_M for all drafters, because it finds the verifier's time "essentially constant across these
// methods". T_M is the mean over the suite's drafters. Plain decoding has τ = 1, no T_D and a T_M
// of its own, a pass of one row. The model leaves out that passes of different trees cost different
// times, and the rest of a round.
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

// model fills in the figures of speculative decoding's usual model, in JetSpec's Equations 1 and 2: α,
// the chance that a node is accepted, the same at each depth; γc, the time of drafting relative to a
// plain pass; and the speed-up if a pass takes as long for a tree as for one row, (1 + α + … + α^γ)/(γc
// + 1). γ is the depth at which an accepted path has no more nodes, so α is the chance that any of a
// node's children is accepted. The measured speed-up is lower by the cost of the rows of trees.
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

// publishedAccept returns the acceptance of DynaTree's Table 3 as its code computes it: the tokens
// of a round divided by D₀ + 2, by the fixed tree's depth + 2, or by a chain's length. It may
// exceed 1, and methods cannot be compared by it. It is empty for other drafters.
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
