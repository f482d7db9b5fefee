// The columns of tables.

package bench

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/speculate"
)

// column is a column of a table: its heading, and its cells.
type column struct {
	head string
	cell func(s *SuiteReport, m *MethodReport) string
}

// columns maps names to columns. "over NAME" is the speed relative to another method's; "tau over
// NAME" and "draft over NAME" are τ and drafting time relative to the other's.
var columns = map[string]column{
	"tokens_per_s": {"tokens/s", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.1f", m.TokensPerS) }},
	"speed": {"tokens/s (quartiles)", func(_ *SuiteReport, m *MethodReport) string {
		return spreadText(m.SpeedQuartiles, "%.1f")
	}},
	"speedup": {"speed-up (quartiles)", func(_ *SuiteReport, m *MethodReport) string {
		return spreadText(m.SpeedupQuartiles, "%.2f")
	}},
	"times":     {"speed-up", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.Speedup) }},
	"whole":     {"with the prompt", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.WholeSpeedup) }},
	"tau":       {"τ", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.Tau) }},
	"path":      {"path", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.PathLength) })},
	"accept":    {"accepted", drafting(func(m *MethodReport) string { return percent(m.AcceptRate) })},
	"nodes":     {"nodes", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.1f", m.Nodes) })},
	"draft":     {"drafting", drafting(func(m *MethodReport) string { return percent(m.DraftShare) })},
	"draft_ms":  {"T_D ms", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.DraftMS) })},
	"verify_ms": {"T_M ms", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.VerifyMS) }},
	"rest_ms":   {"rest ms", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.RestMS) }},
	"total": {"speed-up of the whole", func(_ *SuiteReport, m *MethodReport) string {
		return fmt.Sprintf("%.2f", m.SpeedupTotal)
	}},
	"predicted": {"by Φ", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.Predicted) })},
	"alpha":     {"α", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.Alpha) })},
	"cost":      {"γc", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.DraftCost) })},
	"modelled":  {"by Eq. 2", drafting(func(m *MethodReport) string { return fmt.Sprintf("%.2f", m.Modelled) })},
	"published": {"Accept.", drafting((*MethodReport).publishedAccept)},
	"list":      {"shortlist", listing(func(m *MethodReport) string { return fmt.Sprintf("%.0f", m.ListSize) })},
	"covered":   {"covered", listing(func(m *MethodReport) string { return fmt.Sprintf("%.1f%%", 100*m.Coverage) })},
	"plain":     {"plain rounds", drafting(func(m *MethodReport) string { return percent(m.PlainShare) })},
	"rounds": {"rounds", func(s *SuiteReport, m *MethodReport) string {
		return fmt.Sprintf("%.0f", share(float64(m.Rounds), float64(s.Runs)))
	}},
	"ttft":       {"TTFT ms", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.1f", m.FirstMS) }},
	"tpot":       {"TPOT ms", func(_ *SuiteReport, m *MethodReport) string { return fmt.Sprintf("%.2f", m.PerTokenMS) }},
	"mismatches": {"mismatches", func(_ *SuiteReport, m *MethodReport) string { return mismatches(m) }},
	"peak": {"peak MB", func(_ *SuiteReport, m *MethodReport) string {
		if m.Peak == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f", float64(m.Peak)/1e6)
	}},
	"peak over plain": {"over plain", func(s *SuiteReport, m *MethodReport) string {
		if p := s.plain(); p != nil && p.Peak > 0 {
			return fmt.Sprintf("%+.2f%%", 100*(float64(m.Peak)/float64(p.Peak)-1))
		}
		return "–"
	}},
}

// lookColumn finds a column.
func lookColumn(name string) (column, error) {
	if c, ok := columns[name]; ok {
		return c, nil
	}
	if base, ok := strings.CutPrefix(name, "over "); ok {
		return column{"over " + base, func(s *SuiteReport, m *MethodReport) string {
			b := s.Method(base)
			if b == nil || b.TokensPerS == 0 {
				return "–"
			}
			return fmt.Sprintf("%+.1f%%", 100*(m.TokensPerS/b.TokensPerS-1))
		}}, nil
	}
	for _, share := range []struct {
		name, head string
		of         func(*MethodReport) float64
	}{
		{"tau over ", "τ over ", func(m *MethodReport) float64 { return m.Tau }},
		{"draft over ", "T_D over ", func(m *MethodReport) float64 { return m.DraftMS }},
	} {
		if base, ok := strings.CutPrefix(name, share.name); ok {
			return column{share.head + base, func(s *SuiteReport, m *MethodReport) string {
				b := s.Method(base)
				if b == nil || share.of(b) == 0 || m.Drafter == "" {
					return "–"
				}
				return fmt.Sprintf("%.3f", share.of(m)/share.of(b))
			}}, nil
		}
	}
	return column{}, fmt.Errorf("there is no column %q", name)
}

// drafting returns a cell that is empty for plain decoding.
func drafting(f func(*MethodReport) string) func(*SuiteReport, *MethodReport) string {
	return func(_ *SuiteReport, m *MethodReport) string {
		if m.Drafter == "" {
			return "–"
		}
		return f(m)
	}
}

// listing returns a cell that only drafters with a shortlist have.
func listing(f func(*MethodReport) string) func(*SuiteReport, *MethodReport) string {
	return func(_ *SuiteReport, m *MethodReport) string {
		if m.ListSize == 0 {
			return "–"
		}
		return f(m)
	}
}

func percent(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

func spreadText(q Quartiles, format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", q[1], q[0], q[2])
}

func mismatches(m *MethodReport) string {
	switch {
	case m.Mismatches == nil && m.Accept == speculate.Typical:
		return "lossy"
	case m.Mismatches == nil:
		return "another sample"
	}
	return fmt.Sprint(*m.Mismatches)
}
