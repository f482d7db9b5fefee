// Figures computed from measurements.

package bench

import (
	"slices"
	"time"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/speculate"
)

// report computes the figures of a suite.
func (s *suiteRun) report(o *SpecOptions) SuiteReport {
	r := SuiteReport{
		Name: s.name, About: s.run.Suite.About, Temperature: s.sampling.Temperature,
		Prompts: (len(s.cases) + len(s.seeds) - 1) / len(s.seeds), WarmUp: len(s.warm), Cut: s.cut,
	}
	for i, c := range s.cases {
		p := &s.prompts[i/len(s.seeds)]
		r.Copied += copied(p.prompt, c[s.plain][0].tokens) / float64(len(s.cases))
		r.Forced = r.Forced || len(p.forced) > 0
	}
	for m := range s.run.Methods {
		r.Methods = append(r.Methods, s.method(m, o))
	}
	for _, c := range s.cases {
		r.Runs += len(c[s.plain])
	}
	r.predict()
	r.model()
	return r
}

// method computes the figures of one method.
func (s *suiteRun) method(m int, o *SpecOptions) MethodReport {
	method := &s.run.Methods[m]
	r := MethodReport{
		Name: method.Name, Drafter: method.Drafter, Accept: method.Accept, Budget: method.Budget,
		Controller: method.Drafter != "" && !method.Uncontrolled, Depths: []DepthReport{},
	}
	wrong, longest := 0, 0
	var all, plain part
	var stats speculate.Stats
	var lists shortlist.Stats
	listed := false
	var whole time.Duration
	for _, c := range s.cases {
		want := c[s.plain][0].tokens
		for _, g := range c[m] {
			r.Tokens += len(g.tokens)
			longest = max(longest, len(g.tokens))
			wrong += differences(g.tokens, want)
			if g.finish == speculate.End {
				r.Ended++
			}
			all.add(g.whole())
			whole += g.first + g.whole().time
			stats.Add(&g.stats)
			lists.Add(g.lists)
			listed = listed || g.listed
		}
		for _, g := range c[s.plain] {
			plain.add(g.whole())
		}
	}
	if method.compared(s.sampling) {
		r.Mismatches = &wrong
	}
	r.TokensPerS, r.Tau = all.perSecond(), all.tau()
	r.Rounds, r.SpeedupTotal = all.rounds, share(all.perSecond(), plain.perSecond())
	r.WholePerS = share(float64(r.Tokens), whole.Seconds())
	r.AcceptRate = share(float64(all.accepted), float64(all.drafted))
	r.PathLength = share(float64(all.accepted), float64(all.rounds))
	r.Nodes = share(float64(all.drafted), float64(all.rounds))
	r.PlainShare, r.DraftShare = share(float64(stats.Plain), float64(stats.Rounds)), stats.DraftShare()
	ms := func(d time.Duration) float64 { return share(1e3*d.Seconds(), float64(stats.Rounds)) }
	r.DraftMS, r.VerifyMS = ms(stats.Draft), ms(stats.Verify)
	r.RestMS = ms(stats.Rest)
	r.ListSize, r.Coverage = lists.Size(), lists.Coverage()
	if listed && lists.Rows == 0 { // its head computes all tokens
		r.ListSize, r.Coverage = float64(o.Target.Vocab), 1
	}
	for i, d := range stats.Depths {
		r.Depths = append(r.Depths, DepthReport{i + 1, d.Offered, d.Tried, d.Drafted, d.Accepted,
			share(float64(d.Accepted), float64(d.Offered))})
	}

	speed := func(g *generation) float64 { return g.whole().perSecond() }
	r.SpeedQuartiles = quartiles(s.each(m, speed))
	r.SpeedupQuartiles = quartiles(s.ratios(m, speed))
	r.Speedup = r.SpeedupQuartiles[1]
	r.WholeSpeedup = quartiles(s.ratios(m, (*generation).wholePerSecond))[1]
	r.FirstMS = quartiles(s.each(m, func(g *generation) float64 { return 1e3 * g.first.Seconds() }))[1]
	r.PerTokenMS = quartiles(s.each(m, func(g *generation) float64 { return 1e3 * share(1, speed(g)) }))[1]

	r.Begin = s.part(m, 1, beginning, 1)
	r.Rest = s.part(m, beginning+1, o.MaxTokens, 1)
	r.Lengths, r.Positions = []PartReport{}, []PartReport{}
	for _, n := range lengths(o) {
		if p := s.part(m, 1, n, n); p.Tokens > 0 {
			r.Lengths = append(r.Lengths, p)
		}
	}
	for from := 1; from <= longest; from += positionStep {
		r.Positions = append(r.Positions, s.part(m, from, min(from+positionStep-1, longest), 1))
	}
	return r
}

// whole returns all of the output except its first token.
func (g *generation) whole() part { return g.part(1, 1<<30) }

// wholePerSecond returns the speed, including reading the prompt.
func (g *generation) wholePerSecond() float64 {
	return share(float64(len(g.tokens)), (g.first + g.whole().time).Seconds())
}

// typical returns a figure of a method on one case: the median of its repeats.
func typical(gs []*generation, f func(*generation) float64) float64 {
	var v []float64
	for _, g := range gs {
		v = append(v, f(g))
	}
	return median(v)
}

// each returns a figure of a method on every case that has it.
func (s *suiteRun) each(m int, f func(*generation) float64) (v []float64) {
	for _, c := range s.cases {
		if x := typical(c[m], f); x > 0 {
			v = append(v, x)
		}
	}
	return v
}

// ratios returns a figure of a method relative to plain decoding's, on every case where both have
// one: the median over its repeats, each relative to the plain one of the same round, moments
// apart. So a machine whose speed changes from minute to minute matters little.
func (s *suiteRun) ratios(m int, f func(*generation) float64) (v []float64) {
	for _, c := range s.cases {
		var pairs []float64
		for i, g := range c[m] {
			if x, plain := f(g), f(c[s.plain][i]); x > 0 && plain > 0 {
				pairs = append(pairs, x/plain)
			}
		}
		if len(pairs) > 0 {
			v = append(v, median(pairs))
		}
	}
	return v
}

// part computes figures of tokens from to to, over outputs with least or more tokens: repeats may differ in length.
func (s *suiteRun) part(m, from, to, least int) PartReport {
	r := PartReport{From: from, To: to}
	var sum part
	repeated, places := 0, 0
	least = max(least, from)
	for _, c := range s.cases {
		long := slices.DeleteFunc(slices.Clone(c[m]), func(g *generation) bool { return len(g.tokens) < least })
		r.Prompts += min(len(long), 1)
		for _, g := range long {
			sum.add(g.part(from, to))
			for _, again := range Repeats(g.tokens)[from-1 : min(to, len(g.tokens))] {
				places++
				if again {
					repeated++
				}
			}
		}
	}
	r.Tokens, r.Tau = sum.tokens, sum.tau()
	r.TokensPerS = sum.perSecond()
	r.AcceptRate = share(float64(sum.accepted), float64(sum.drafted))
	r.PathLength = share(float64(sum.accepted), float64(sum.rounds))
	r.Repeated = share(float64(repeated), float64(places))
	r.Speedup = quartiles(s.ratios(m, func(g *generation) float64 {
		if len(g.tokens) < least {
			return 0
		}
		return g.part(from, to).perSecond()
	}))[1]
	return r
}

// lengths lists the lengths of outputs to report: those asked for, or powers of 2, up to the longest.
func lengths(o *SpecOptions) []int {
	var all []int
	for _, n := range o.Lengths {
		if n >= 2 && n <= o.MaxTokens {
			all = append(all, n)
		}
	}
	for n := 32; len(o.Lengths) == 0 && n < o.MaxTokens; n *= 2 {
		all = append(all, n)
	}
	all = append(all, o.MaxTokens)
	slices.Sort(all)
	return slices.Compact(all)
}
