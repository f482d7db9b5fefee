// Acceptance by depth, as a table: how well a drafter holds up on its own states.

package bench

import (
	"fmt"
	"strings"
)

// far is the depth from which on acceptance is also given as one figure.
const far = 4

// depthTable writes, for every suite and drafter, how often a token at a depth was accepted given
// that all before it were, and the same from depth far on.
func (r *SpecReport) depthTable(b *strings.Builder, t TableView) {
	fmt.Fprintf(b, "\n## %s\n\nOf the rounds that accepted the depth before, those that accepted one there.\n\n", t.Title)
	head := []string{"suite", "method", "τ"}
	for d := 1; d <= t.Depths; d++ {
		head = append(head, fmt.Sprint("depth ", d))
	}
	head = append(head, fmt.Sprintf("%d and beyond", far))
	writeTitles(b, head...)
	for i := range r.Suites {
		s := &r.Suites[i]
		for k := range s.Methods {
			m := &s.Methods[k]
			if m.Drafter == "" {
				continue
			}
			row := []string{s.Name, m.Name, fmt.Sprintf("%.2f", m.Tau)}
			for d := 1; d <= t.Depths; d++ {
				row = append(row, held(m, d, d))
			}
			writeRow(b, append(row, held(m, far, t.Depths)))
		}
	}
}

// held returns the fraction of rounds that accepted a node at depths from to to.
func held(m *MethodReport, from, to int) string {
	accepted, tried := m.acceptance(from, to)
	if tried == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", share(float64(accepted), float64(tried)))
}

// acceptance counts the rounds that accepted a node at depths from to to, and those that accepted
// the one before it: at depth 1, all rounds with a tree.
func (m *MethodReport) acceptance(from, to int) (accepted, tried int) {
	for d := from; d <= min(to, len(m.Depths)); d++ {
		accepted += m.Depths[d-1].Accepted
		if d == 1 {
			tried += m.Depths[0].Rounds
		} else {
			tried += m.Depths[d-2].Accepted
		}
	}
	return accepted, tried
}
