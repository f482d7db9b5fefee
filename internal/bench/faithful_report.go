// The report of Faithful: JetSpec's Tables 8 and 9, and the gap by depth.

package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/grovellm/grove/tokenizer"
)

// FaithfulReport says how well drafters' trees predicted acceptance. A gap is the drafter's
// log-probability of a branch minus the target's, in nats for the whole branch: above 0, the
// drafter trusts the branch more than it should.
type FaithfulReport struct {
	Setting
	MaxTokens int             `json:"max_tokens"`
	Every     int             `json:"every"`  // tokens from one place to the next
	Bounds    []float64       `json:"bounds"` // of the classes that gaps are counted in
	Suites    []FaithfulSuite `json:"suites"`
}

// FaithfulSuite is a suite's part.
type FaithfulSuite struct {
	Name    string           `json:"name"`
	Prompts int              `json:"prompts"`
	Places  int              `json:"places"` // where trees were examined, the same for all methods
	Methods []FaithfulMethod `json:"methods"`
	Example *FaithfulExample `json:"example,omitempty"`
}

// FaithfulMethod is about one drafter's trees. Figures of branches are means over places.
type FaithfulMethod struct {
	Name     string  `json:"name"`
	Drafter  string  `json:"drafter"`
	Budget   int     `json:"budget"`
	Accepted float64 `json:"accepted"` // tokens that a round would commit, including the bonus token

	Gap     Quartiles `json:"rank1_gap_quartiles"`
	MeanGap float64   `json:"rank1_gap_mean"`
	// fractions of places by rank 1's gap: below the first bound (faithful), …, from the last on (extreme)
	Shares []float64 `json:"rank1_shares"`
	// fraction of places where rank 1's gap exceeds the first method's
	Exceeds   float64      `json:"exceeds_first"`
	Ranks     []BranchMean `json:"ranks"`  // the branches that the drafter trusts most
	Depths    []BranchMean `json:"depths"` // its likeliest path up to each depth
	rank1Gaps []float64
}

// BranchMean is a mean over branches.
type BranchMean struct {
	N        int     `json:"n"` // rank or depth
	Places   int     `json:"places"`
	Tokens   float64 `json:"tokens"`
	Draft    float64 `json:"draft_logprob"`
	Target   float64 `json:"target_logprob"`
	Gap      float64 `json:"gap"`
	Faithful float64 `json:"faithful"` // fraction with a gap below the first bound
}

// FaithfulExample is the place where the rank 1 gaps of the first and last methods differ most.
type FaithfulExample struct {
	Prompt  string            `json:"prompt"`
	At      int               `json:"at"` // tokens of the output before it
	Root    string            `json:"root"`
	Methods []ExampleBranches `json:"methods"`
}

// ExampleBranches are the best branches of one method there.
type ExampleBranches struct {
	Name     string        `json:"name"`
	Accepted int           `json:"accepted"`
	Branches []ExampleText `json:"branches"`
}

// ExampleText is a branch as text.
type ExampleText struct {
	Text string `json:"text"`
	branch
}

// gapBounds are the classes of Table 9 in nats: faithful below the first, extreme from the last on,
// which is e¹⁰ (22,000) times too likely. Our copy of the paper's text lacks its own bounds.
var gapBounds = [...]float64{0.5, 2, 5, 10}

func gapClass(gap float64) int {
	for i, b := range gapBounds {
		if gap < b {
			return i
		}
	}
	return len(gapBounds)
}

// report computes the figures of a suite.
func (p *places) report(suite string, prompts int) FaithfulSuite {
	s := FaithfulSuite{Name: suite, Prompts: prompts, Places: len(p.found), Methods: []FaithfulMethod{}}
	for m := range p.looks {
		l := &p.looks[m]
		f := FaithfulMethod{Name: l.method.Name, Drafter: l.method.Drafter, Budget: l.method.Budget,
			Shares: make([]float64, len(gapBounds)+1)}
		exceeds, accepted := 0, 0
		for i := range p.found {
			j := &p.found[i].trees[m]
			accepted += j.accepted
			f.Ranks, f.Depths = gather(f.Ranks, j.ranks), gather(f.Depths, j.best)
			if len(j.ranks) == 0 {
				continue
			}
			gap := j.ranks[0].gap()
			f.rank1Gaps = append(f.rank1Gaps, gap)
			if first := p.found[i].trees[0].ranks; len(first) > 0 && gap > first[0].gap() {
				exceeds++
			}
		}
		n := float64(len(f.rank1Gaps))
		for _, gap := range f.rank1Gaps {
			f.Shares[gapClass(gap)]++
			f.MeanGap += gap
		}
		for i := range f.Shares {
			f.Shares[i] = share(f.Shares[i], n)
		}
		f.Gap, f.MeanGap = quartiles(f.rank1Gaps), share(f.MeanGap, n)
		f.Exceeds, f.Accepted = share(float64(exceeds), n), share(float64(accepted), float64(len(p.found)))
		settle(f.Ranks)
		settle(f.Depths)
		s.Methods = append(s.Methods, f)
	}
	s.Example = p.example()
	return s
}

// gather adds a tree's branches to sums, each to the sum of its rank or depth.
func gather(sums []BranchMean, all []branch) []BranchMean {
	for i := range all {
		if i == len(sums) {
			sums = append(sums, BranchMean{N: i + 1})
		}
		s, b := &sums[i], &all[i]
		s.Places++
		s.Tokens += float64(len(b.Tokens))
		s.Draft += b.Draft
		s.Target += b.Target
		s.Gap += b.gap()
		if b.gap() < gapBounds[0] {
			s.Faithful++
		}
	}
	return sums
}

// settle turns sums into means.
func settle(sums []BranchMean) {
	for i := range sums {
		s := &sums[i]
		for _, v := range []*float64{&s.Tokens, &s.Draft, &s.Target, &s.Gap, &s.Faithful} {
			*v /= float64(s.Places)
		}
	}
}

// example finds the place to show.
func (p *places) example() *FaithfulExample {
	last := len(p.looks) - 1
	at, most := -1, 0.0
	for i, f := range p.found {
		if a, b := f.trees[0].ranks, f.trees[last].ranks; len(a) > 0 && len(b) > 0 && b[0].gap()-a[0].gap() > most {
			at, most = i, b[0].gap()-a[0].gap()
		}
	}
	if at < 0 {
		return nil
	}
	f := &p.found[at]
	decode := func(tokens []int32) string {
		return p.o.Target.Model.Tokenizer.Decode(tokens, tokenizer.DecodeOptions{})
	}
	e := &FaithfulExample{Prompt: f.prompt, At: f.at, Root: decode([]int32{f.root})}
	for m := range p.looks {
		x := ExampleBranches{Name: p.looks[m].method.Name, Accepted: f.trees[m].accepted}
		for _, b := range f.trees[m].ranks {
			x.Branches = append(x.Branches, ExampleText{decode(b.Tokens), b})
		}
		e.Methods = append(e.Methods, x)
	}
	return e
}

// Markdown writes the report.
func (r *FaithfulReport) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b, "How far trees are to be believed")
	line(&b, "trees", "at every %d tokens of plain decoding, %d tokens at most; temperature 0", r.Every, r.MaxTokens)
	line(&b, "gap", "draft log-probability of a branch less the target's joint one, in nats; rank 1 is the leaf that the drafter holds likeliest")
	for i := range r.Suites {
		r.Suites[i].markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *FaithfulSuite) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%d prompts, %d places.\n\n", s.Name, s.Prompts, s.Places)
	head := []string{"gap of rank 1, nats"}
	for _, m := range s.Methods {
		head = append(head, m.Name)
	}
	writeTitles(b, head...)
	row := func(name string, f func(m *FaithfulMethod) string) {
		cells := []string{name}
		for i := range s.Methods {
			cells = append(cells, f(&s.Methods[i]))
		}
		writeRow(b, cells)
	}
	for c := range len(gapBounds) + 1 {
		name := ""
		switch c {
		case 0:
			name = fmt.Sprintf("< %g (faithful)", gapBounds[0])
		case len(gapBounds):
			name = fmt.Sprintf("≥ %g (extreme)", gapBounds[c-1])
		default:
			name = fmt.Sprintf("%g to %g", gapBounds[c-1], gapBounds[c])
		}
		row(name, func(m *FaithfulMethod) string { return percent(m.Shares[c]) })
	}
	row("median (quartiles)", func(m *FaithfulMethod) string { return spreadText(m.Gap, "%.2f") })
	row("mean", func(m *FaithfulMethod) string { return fmt.Sprintf("%.2f", m.MeanGap) })
	row("larger than "+s.Methods[0].Name+"'s", func(m *FaithfulMethod) string { return percent(m.Exceeds) })
	row("tokens accepted", func(m *FaithfulMethod) string { return fmt.Sprintf("%.2f", m.Accepted) })
	b.WriteString("\nBranches by rank: tokens, draft and target log-probability, gap, share that is faithful.\n\n")
	means(b, "rank", s.Methods, func(m *FaithfulMethod) []BranchMean { return m.Ranks })
	b.WriteString("\nThe likeliest path up to a depth, where trees go so deep:\n\n")
	means(b, "depth", s.Methods, func(m *FaithfulMethod) []BranchMean { return m.Depths })
	s.Example.markdown(b)
}

func means(b *strings.Builder, name string, methods []FaithfulMethod, of func(*FaithfulMethod) []BranchMean) {
	writeTitles(b, "method", name, "places", "tokens", "draft", "target", "gap", "faithful")
	for i := range methods {
		for _, x := range of(&methods[i]) {
			writeRow(b, []string{methods[i].Name, fmt.Sprint(x.N), fmt.Sprint(x.Places), fmt.Sprintf("%.1f", x.Tokens),
				fmt.Sprintf("%.2f", x.Draft),
				fmt.Sprintf("%.2f", x.Target), fmt.Sprintf("%.2f", x.Gap), percent(x.Faithful)})
		}
	}
}

func (e *FaithfulExample) markdown(b *strings.Builder) {
	if e == nil {
		return
	}
	fmt.Fprintf(b, "\nWhere the first and the last method's gaps differ most: %s, after %d tokens, root %q.\n\n", e.Prompt, e.At, e.Root)
	writeTitles(b, "method (tokens accepted)", "rank", "branch", "draft", "target", "gap")
	for _, m := range e.Methods {
		for i, x := range m.Branches {
			writeRow(b, []string{fmt.Sprintf("%s (%d)", m.Name, m.Accepted), fmt.Sprint(i + 1), fmt.Sprintf("`%q`", x.Text),
				fmt.Sprintf("%.2f", x.Draft),
				fmt.Sprintf("%.2f", x.Target), fmt.Sprintf("%.2f", x.gap())})
		}
	}
}
