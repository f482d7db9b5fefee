package speculate

import "time"

// Stats describe the cost of decoding and the gain of speculation.
type Stats struct {
	Prompt int // tokens of the prompt
	Reused int // of those, how many came in a cache filled earlier, and were not computed again
	Tokens int // tokens emitted: one after the prompt, then those of the rounds

	Rounds    int     // target passes after the prompt's
	Plain     int     // of those, how many verified no drafted node although there is a drafter
	Committed int     // tokens emitted by rounds
	Proposed  int     // nodes drafted, roots not counted
	Drafted   int     // of those, how many the controller kept and the target verified
	Accepted  int     // of those, how many the target chose
	Depths    []Depth // nodes verified and accepted by depth; Depths[0] is depth 1

	Prefill time.Duration // passes of the prompt
	Draft   time.Duration // of rounds: the drafter's proposals and commits
	Verify  time.Duration // of rounds: the target's pass
	Rest    time.Duration // of rounds: choosing nodes and tokens, compacting caches

	First  time.Duration // from Start to the first token (time to first token, TTFT)
	Decode time.Duration // from the first token to the last
}

// Depth counts nodes at one depth.
type Depth struct {
	Offered  int // rounds whose tree had a node there
	Tried    int // of these, rounds whose accepted path reached a node's parent
	Drafted  int // nodes
	Accepted int // nodes that the target chose, at most one per round
}

// Tau returns τ, the mean number of tokens that a target pass committed, bonus token included; 1 in plain decoding.
func (s *Stats) Tau() float64 { return ratio(s.Committed, s.Rounds) }

// AcceptRate returns the share of drafted nodes that the target chose.
func (s *Stats) AcceptRate() float64 { return ratio(s.Accepted, s.Drafted) }

// PathLength returns the mean number of drafted nodes that a round accepted, not counting the bonus token.
func (s *Stats) PathLength() float64 { return ratio(s.Accepted, s.Rounds) }

// NodesPerRound returns the mean number of drafted nodes that a pass verified.
func (s *Stats) NodesPerRound() float64 { return ratio(s.Drafted, s.Rounds) }

// DraftShare returns the share of the rounds' time that the drafter took.
func (s *Stats) DraftShare() float64 {
	if all := s.Draft + s.Verify + s.Rest; all > 0 {
		return float64(s.Draft) / float64(all)
	}
	return 0
}

// PerToken returns the mean time from one token to the next after the first (time per output token, TPOT).
func (s *Stats) PerToken() time.Duration {
	if s.Tokens < 2 {
		return 0
	}
	return s.Decode / time.Duration(s.Tokens-1)
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Add adds o to s, except First and Decode, which belong to one sequence.
func (s *Stats) Add(o *Stats) {
	s.Prompt, s.Reused = s.Prompt+o.Prompt, s.Reused+o.Reused
	s.Tokens, s.Committed = s.Tokens+o.Tokens, s.Committed+o.Committed
	s.Rounds, s.Plain = s.Rounds+o.Rounds, s.Plain+o.Plain
	s.Proposed += o.Proposed
	s.Drafted, s.Accepted = s.Drafted+o.Drafted, s.Accepted+o.Accepted
	for i, d := range o.Depths {
		at := s.at(i)
		at.Offered, at.Tried = at.Offered+d.Offered, at.Tried+d.Tried
		at.Drafted, at.Accepted = at.Drafted+d.Drafted, at.Accepted+d.Accepted
	}
	s.Prefill, s.Draft = s.Prefill+o.Prefill, s.Draft+o.Draft
	s.Verify += o.Verify
	s.Rest += o.Rest
}

// at returns Depths[i], and makes it if there is none.
func (s *Stats) at(i int) *Depth {
	for len(s.Depths) <= i {
		s.Depths = append(s.Depths, Depth{})
	}
	return &s.Depths[i]
}

func (s *Stats) time(draft, verify, all time.Duration) {
	s.Draft += draft
	s.Verify += verify
	s.Rest += all - draft - verify
}
