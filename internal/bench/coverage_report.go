// The report of Coverage.

package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// CoverageReport says what shortlists hold of the target's distributions, at temperature 1.
type CoverageReport struct {
	Setting
	Head      string          `json:"head"`
	Vocab     int             `json:"vocabulary"` // tokens of the head's output
	Steps     int             `json:"steps"`      // of a draft
	Every     int             `json:"every"`      // tokens from one place to the next
	MaxTokens int             `json:"max_tokens"`
	Suites    []CoverageSuite `json:"suites"`
}

// CoverageSuite is a suite's part.
type CoverageSuite struct {
	Name    string           `json:"name"`
	Prompts int              `json:"prompts"`
	Places  int              `json:"places"` // where drafts began, the same for all methods
	Methods []CoverageMethod `json:"methods"`
}

// CoverageMethod is about one shortlist.
type CoverageMethod struct {
	Name    string `json:"name"`
	Drafter string `json:"drafter"`
	CoverageMean
	Length float64        `json:"length"`  // tokens that a draft of so many steps would commit, bonus token included, if each were drawn from the drafter
	ByStep []CoverageMean `json:"by_step"` // the first is that of the root's row
}

// CoverageMean is means over rows.
type CoverageMean struct {
	Size         float64 `json:"shortlist_size"`
	Coverage     float64 `json:"coverage"`      // the target's probability of the tokens listed: no draft from them is accepted more often (Lemma 1)
	Oracle       float64 `json:"oracle"`        // that of the likeliest as many: no list of the size is better (Lemma 2)
	Accept       float64 `json:"accept"`        // Σ min(p, q), q the drafter's distribution on the list: how often what it draws is accepted
	OracleAccept float64 `json:"oracle_accept"` // the same of the drafter on the oracle's list
}

// add adds a part of another mean.
func (m *CoverageMean) add(o CoverageMean, part float64) {
	m.Size += part * o.Size
	m.Coverage += part * o.Coverage
	m.Oracle += part * o.Oracle
	m.Accept += part * o.Accept
	m.OracleAccept += part * o.OracleAccept
}

// report makes the figures of a suite.
func (w *coverage) report(suite string, prompts int) CoverageSuite {
	s := CoverageSuite{Name: suite, Prompts: prompts, Places: w.places, Methods: []CoverageMethod{}}
	for _, l := range w.looks {
		m := CoverageMethod{Name: l.name, Drafter: l.drafter, Length: 1}
		path := 1.0
		for k := range l.steps {
			a := &l.steps[k]
			mean := CoverageMean{a.Size(), a.Coverage(), a.Oracle(), a.Accept(), a.OracleAccept()}
			m.ByStep = append(m.ByStep, mean)
			m.add(mean, 1/float64(len(l.steps)))
			path *= mean.Accept
			m.Length += path
		}
		s.Methods = append(s.Methods, m)
	}
	return s
}

// Markdown writes the report.
func (r *CoverageReport) Markdown(out io.Writer) error {
	var b strings.Builder
	r.head(&b, "Shortlists against the best of their size")
	line(&b, "head", "%s, %d tokens", r.Head, r.Vocab)
	line(&b, "outputs", "at most %d tokens, to the end of the text, at temperature 0; a draft of %d steps at every %dth token, along the output", r.MaxTokens, r.Steps, r.Every)
	line(&b, "distributions", "at temperature 1; covered: the target's probability of the tokens listed, and of the likeliest as many (oracle); accepted: Σ min(p, q), the drafter on the list, and on the oracle's")
	for _, s := range r.Suites {
		fmt.Fprintf(&b, "\n## %s\n\n%d prompts, %d drafts.\n\n", s.Name, s.Prompts, s.Places)
		writeRow(&b, []string{"method", "tokens", "covered", "oracle", "accepted", "oracle's", "tokens a draft"})
		writeRule(&b, 7)
		for _, m := range s.Methods {
			writeRow(&b, []string{
				m.Name, fmt.Sprintf("%.0f", m.Size), fmt.Sprintf("%.4f", m.Coverage), fmt.Sprintf("%.4f", m.Oracle),
				fmt.Sprintf("%.3f", m.Accept), fmt.Sprintf("%.3f", m.OracleAccept), fmt.Sprintf("%.2f", m.Length),
			})
		}
		b.WriteString("\nBy the step of the draft: tokens, covered, accepted.\n\n")
		head := []string{"method"}
		for k := range r.Steps {
			head = append(head, fmt.Sprint("step ", k+1))
		}
		writeRow(&b, head)
		writeRule(&b, len(head))
		for _, m := range s.Methods {
			row := []string{m.Name}
			for _, c := range m.ByStep {
				row = append(row, fmt.Sprintf("%.0f, %.3f, %.3f", c.Size, c.Coverage, c.Accept))
			}
			writeRow(&b, row)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Save writes the report into a folder, with a figure for each suite: coverage by the size of the list.
func (r *CoverageReport) Save(dir string) ([]string, error) {
	files, err := saveReport(dir, r, r.Markdown)
	for _, s := range r.Suites {
		if err != nil {
			return files, err
		}
		var c *chart
		if c, err = r.bySize(&s); err != nil {
			return files, err
		}
		var drawn []string
		drawn, err = c.save(dir, s.Name+"-coverage-by-size")
		files = append(files, drawn...)
	}
	return files, err
}

// bySize draws the shortlists of a suite, those of one kind as a line, and the oracle's of their sizes.
func (r *CoverageReport) bySize(s *CoverageSuite) (*chart, error) {
	p := r.newChart(s.Name+": the target's probability of the tokens listed", byList, "covered")
	var names []string
	points := map[string]plotter.XYs{}
	for _, m := range s.Methods {
		kind := (&MethodReport{Drafter: m.Drafter}).listLine()
		if kind == "" {
			continue
		}
		for _, name := range []string{kind, "oracle"} {
			if points[name] == nil {
				names = append(names, name)
			}
		}
		points[kind] = append(points[kind], plotter.XY{X: m.Size, Y: m.Coverage})
		points["oracle"] = append(points["oracle"], plotter.XY{X: m.Size, Y: m.Oracle})
	}
	for i, name := range names {
		xy := points[name]
		slices.SortFunc(xy, byX)
		if err := p.line(i, name, xy); err != nil {
			return nil, err
		}
	}
	return p, nil
}
