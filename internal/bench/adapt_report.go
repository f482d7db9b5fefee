package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/grovellm/grove/internal/adapt"
)

// AdaptReport is the result of Adapt.
type AdaptReport struct {
	Setting
	Drafter     string        `json:"drafter"`
	Temperature float32       `json:"temperature"`
	MaxTokens   int           `json:"max_tokens"`
	Epochs      int           `json:"epochs"`
	Chat        bool          `json:"chat,omitempty"`
	Wait        bool          `json:"wait"` // updates were waited for: of their time, only their share is known
	Streams     []AdaptStream `json:"streams"`
	Interrupted bool          `json:"interrupted,omitempty"`
}

// AdaptStream is a stream's part.
type AdaptStream struct {
	Name     string        `json:"name"`
	Queries  int           `json:"queries"` // in one epoch
	Policies []AdaptPolicy `json:"policies"`
}

// AdaptPolicy is the result of a policy on a stream. Speed is decoded tokens divided by the time of
// their rounds, including updates that ran at the same time and their remainders.
type AdaptPolicy struct {
	Name       string       `json:"name"`
	Tau        float64      `json:"tau"`
	TokensPerS float64      `json:"tokens_per_s"`
	TauGain    float64      `json:"tau_gain"`   // relative to the first policy's
	SpeedGain  float64      `json:"speed_gain"` // relative to the first policy's
	DraftShare float64      `json:"draft_share"`
	Mismatches int          `json:"mismatches"` // tokens that differ from the first policy's
	Epochs     []AdaptPart  `json:"by_epoch,omitempty"`
	Windows    []AdaptPart  `json:"windows"`
	Kinds      []AdaptPart  `json:"kinds,omitempty"`
	Learning   *adapt.Stats `json:"learning,omitempty"`
}

// AdaptPart is a part of the queries: an epoch, a stretch of adaptWindow, a kind.
type AdaptPart struct {
	Name       string  `json:"name"`
	Queries    int     `json:"queries"`
	Tau        float64 `json:"tau"`
	TokensPerS float64 `json:"tokens_per_s"`
}

const adaptWindow = 25

func partOf(name string, queries []queried) AdaptPart {
	p := AdaptPart{Name: name, Queries: len(queries)}
	tokens, rounds := 0, 0
	seconds := 0.0
	for _, q := range queries {
		tokens += q.committed
		rounds += q.rounds
		seconds += q.seconds
	}
	p.Tau, p.TokensPerS = share(float64(tokens), float64(rounds)), share(float64(tokens), seconds)
	return p
}

// report computes the figures of the first n queries, which all policies have decoded, or nil if n is 0.
func (o *AdaptOptions) report(s Stream, all []*learning, n int) *AdaptStream {
	if n == 0 {
		return nil
	}
	r := &AdaptStream{Name: s.Name, Queries: len(s.Prompts)}
	var kinds []string
	for _, p := range s.Prompts {
		if !slices.Contains(kinds, p.Kind) {
			kinds = append(kinds, p.Kind)
		}
	}
	for _, l := range all {
		l.queries = l.queries[:n]
		whole := partOf("", l.queries)
		p := AdaptPolicy{Name: l.policy, Tau: whole.Tau, TokensPerS: whole.TokensPerS}
		draft, seconds := 0.0, 0.0
		for i, q := range l.queries {
			draft += q.draft
			seconds += q.seconds
			p.Mismatches += differences(q.tokens, all[0].queries[i].tokens)
		}
		p.DraftShare = share(draft, seconds)
		first := partOf("", all[0].queries)
		p.TauGain, p.SpeedGain = share(p.Tau, first.Tau), share(p.TokensPerS, first.TokensPerS)
		for from := 0; from < len(l.queries); from += adaptWindow {
			p.Windows = append(p.Windows, partOf(fmt.Sprint(from+1), l.queries[from:min(from+adaptWindow, len(l.queries))]))
		}
		if o.Epochs > 1 {
			for epoch := range slices.Chunk(l.queries, len(s.Prompts)) {
				p.Epochs = append(p.Epochs, partOf(fmt.Sprint(len(p.Epochs)+1), epoch))
			}
		}
		if len(kinds) > 1 {
			for _, kind := range kinds {
				p.Kinds = append(p.Kinds, partOf(kind, slices.DeleteFunc(slices.Clone(l.queries), func(q queried) bool {
					return q.kind != kind
				})))
			}
		}
		if l.adapter != nil {
			p.Learning = new(l.adapter.Stats())
		}
		r.Policies = append(r.Policies, p)
	}
	return r
}

// Markdown writes the report.
func (r *AdaptReport) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b, "A drafter that learns while it serves")
	line(&b, "drafter", "%s, temperature %g, at most %d tokens, %d epochs; chat template: %v", r.Drafter, r.Temperature, r.MaxTokens,
		r.Epochs, yes(r.Chat))
	line(&b, "speed", "decoded tokens over the time of their rounds; the time of updates is in it")
	line(&b, "cost", "decoding time lost to learning; the policy judged stays below what is allowed, but for one task")
	for _, s := range r.Streams {
		fmt.Fprintf(&b, "\n## %s\n\n%d queries an epoch.\n\n", s.Name, s.Queries)
		writeTitles(&b, "policy", "τ", "of the first", "tokens/s", "of the first", "T_D", "updates of the last part",
			"of all", "came into use", "rolled back", "lost, s", "allowed, s", "mismatches")
		for _, p := range s.Policies {
			row := []string{p.Name, fmt.Sprintf("%.3f", p.Tau), fmt.Sprintf("%.3f", p.TauGain),
				fmt.Sprintf("%.1f", p.TokensPerS), fmt.Sprintf("%.3f", p.SpeedGain), percent(p.DraftShare)}
			if l := p.Learning; l != nil {
				row = append(row, fmt.Sprint(l.Updates[adapt.Head]), fmt.Sprint(l.Updates[adapt.Full]), fmt.Sprint(l.Adopted),
					fmt.Sprint(l.Rollbacks), fmt.Sprintf("%.2f", l.Lost), fmt.Sprintf("%.2f", l.Allowed))
			} else {
				row = append(row, "–", "–", "–", "–", "–", "–")
			}
			writeRow(&b, append(row, fmt.Sprint(p.Mismatches)))
		}
		for _, part := range []struct {
			title string
			of    func(*AdaptPolicy) []AdaptPart
		}{
			{"τ by epoch", func(p *AdaptPolicy) []AdaptPart { return p.Epochs }},
			{"τ by kind", func(p *AdaptPolicy) []AdaptPart { return p.Kinds }},
			{fmt.Sprintf("τ by %d queries, from", adaptWindow), func(p *AdaptPolicy) []AdaptPart { return p.Windows }},
		} {
			writeParts(&b, part.title, s.Policies, part.of)
		}
	}
	writeInterrupted(&b, r.Interrupted)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeParts writes a table of τ, with a row for each policy.
func writeParts(b *strings.Builder, title string, policies []AdaptPolicy, of func(*AdaptPolicy) []AdaptPart) {
	if len(of(&policies[0])) < 2 {
		return
	}
	head := []string{title}
	for _, p := range of(&policies[0]) {
		head = append(head, p.Name)
	}
	b.WriteByte('\n')
	writeTitles(b, head...)
	for i := range policies {
		row := []string{policies[i].Name}
		for _, p := range of(&policies[i]) {
			row = append(row, fmt.Sprintf("%.2f", p.Tau))
		}
		writeRow(b, row)
	}
}

// Save writes the report into a folder, with a figure for each stream.
func (r *AdaptReport) Save(dir string) ([]string, error) {
	files, err := saveReport(dir, r, r.Markdown)
	if err != nil {
		return files, err
	}
	for n, s := range r.Streams {
		c := r.newChart(s.Name+": τ while learning", "query", "τ")
		for i, p := range s.Policies {
			var xy plotter.XYs
			for k, part := range p.Windows {
				xy = append(xy, plotter.XY{X: float64(k*adaptWindow) + float64(part.Queries)/2, Y: part.Tau})
			}
			if err := c.line(i, p.Name, xy); err != nil {
				return files, err
			}
		}
		more, err := c.save(dir, fmt.Sprintf("adapt-%d", n+1))
		files = append(files, more...)
		if err != nil {
			return files, err
		}
	}
	return files, nil
}
