// What a round's parts predict of the speed, beside the speed that was measured.

package bench

// predict fills in the speed-ups that SpecBlock's model of the throughput gives: Φ = τ/(T_M + T_D),
// with one T_M for all drafters, as it finds the verifier's time "essentially constant across these
// methods". It is the mean over the suite's drafters. Plain decoding has τ = 1, no T_D and a T_M of
// its own, a pass of one row. What the model leaves out is that passes of other trees cost
// otherwise, and the rest of a round.
func (s *SuiteReport) predict() {
	plain := 0.0
	verify := 0.0
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
