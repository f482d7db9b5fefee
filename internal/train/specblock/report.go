package specblock

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/files/atomicfile"
)

// report is measures.json: the finished head's results on held-out text.
type report struct {
	Block   int            `json:"block"`
	Sources []sourceReport `json:"sources"`
}

type sourceReport struct {
	Source string         `json:"source"`
	Chain  float64        `json:"chain"` // τ
	Places []float64      `json:"places"`
	After  [][]float64    `json:"after"`
	Ranks  []bucketReport `json:"ranks,omitempty"`
	MeanF1 float64        `json:"mean_f1,omitempty"`
}

type bucketReport struct {
	Share     float64 `json:"share"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// reportTexts is the number of texts per source that the finished head is measured on.
const reportTexts = 24

// report measures the head on held-out text, if any is long enough, writes measures.json and logs it as tables.
func (l *learner) report(dir string) error {
	out := report{Block: l.r.Block}
	var measures []*measure
	for i := range l.Sources {
		t := &l.Sources[i]
		m, err := l.head.measure(t, l.r.Rounds, reportTexts, math.MaxInt32, 1)
		if err != nil {
			return err
		}
		if m.Rounds > 0 {
			measures = append(measures, m)
			out.Sources = append(out.Sources, m.report(l.r.RankWidth > 0))
		}
	}
	if len(measures) == 0 {
		return nil
	}
	all := sumMeasures(measures)
	out.Sources = append(out.Sources, all.report(l.r.RankWidth > 0))
	if err := atomicfile.WriteJSON(filepath.Join(dir, "measures.json"), out); err != nil {
		return err
	}
	var b strings.Builder
	out.write(&b)
	l.Job.Notef("%s", strings.TrimRight(b.String(), "\n"))
	return nil
}

// sumMeasures returns the measure of all sources together.
func sumMeasures(list []*measure) *measure {
	sum := &measure{Source: "all", Places: make([]count, len(list[0].Places)),
		After: make([][]count, len(list[0].After))}
	for _, m := range list {
		sum.Tokens += m.Tokens
		sum.Rounds += m.Rounds
		for k, c := range m.Places {
			sum.Places[k].right += c.right
			sum.Places[k].of += c.of
		}
		for i, row := range m.After {
			if sum.After[i] == nil {
				sum.After[i] = make([]count, len(row))
			}
			for k, c := range row {
				sum.After[i][k].right += c.right
				sum.After[i][k].of += c.of
			}
		}
		for i := range m.Ranks {
			for k, n := range m.Ranks[i] {
				sum.Ranks[i][k] += n
			}
		}
	}
	return sum
}

func (m *measure) report(ranks bool) sourceReport {
	r := sourceReport{Source: m.Source, Chain: m.Chain()}
	for _, c := range m.Places {
		r.Places = append(r.Places, c.Share())
	}
	for _, row := range m.After {
		var shares []float64
		for _, c := range row {
			shares = append(shares, c.Share())
		}
		r.After = append(r.After, shares)
	}
	if !ranks {
		return r
	}
	for b := range specblock.RankBuckets {
		var k bucketReport
		k.Share, k.Precision, k.Recall, k.F1 = m.Ranks.Bucket(b)
		r.Ranks = append(r.Ranks, k)
	}
	r.MeanF1 = m.Ranks.MeanF1()
	return r
}

// write prints the tables: α by place in the chain and by row after each cut (figure 5), and the
// rank head's results (table 3).
func (r *report) write(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nshare of right tokens, those before all right\tτ")
	for k := range r.Sources[0].Places {
		fmt.Fprintf(w, "\t%d", k+1)
	}
	fmt.Fprint(w, "\t\n")
	for _, s := range r.Sources {
		fmt.Fprintf(w, "%s\t%.2f", s.Source, s.Chain)
		for _, v := range s.Places {
			fmt.Fprintf(w, "\t%.3f", v)
		}
		fmt.Fprint(w, "\t\n")
	}
	last := r.Sources[len(r.Sources)-1]
	if len(last.Places) > r.Block {
		fmt.Fprint(w, "a second block after row\t")
		for k := range r.Block {
			fmt.Fprintf(w, "\t%d", k+1)
		}
		fmt.Fprint(w, "\t\n")
		for cut, row := range last.After {
			fmt.Fprintf(w, "%d\t", cut+1)
			for _, v := range row {
				fmt.Fprintf(w, "\t%.3f", v)
			}
			fmt.Fprint(w, "\t\n")
		}
	}
	if len(last.Ranks) > 0 {
		fmt.Fprint(w, "rank of the target's token\tshare\tprecision\trecall\tF1\t\n")
		for b, name := range []string{"1", "2 to 4", "5 to 10", "beyond"} {
			k := last.Ranks[b]
			fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t\n", name, k.Share, k.Precision, k.Recall, k.F1)
		}
		fmt.Fprintf(w, "mean\t\t\t\t%.3f\t\n", last.MeanF1)
	}
	w.Flush()
}
