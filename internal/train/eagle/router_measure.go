package eagle

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// The head drafts in routerTexts held-out texts of each source, after every routerEvery-th
// token that the target generated.
const (
	routerTexts = 8
	routerEvery = 4
)

// Validate measures, on drafts after held-out text, the loss, and which share of the tokens that
// the head finds likeliest is on the routed lists: of all tokens kept per row (recall), of each
// row's first token, and of their probability. It does so with the same number of clusters at every
// step, and with fewer at later steps.
func (l *routerLearner) Validate() (losses, figures map[string]float64, err error) {
	if l.held == nil {
		l.hold()
	}
	losses, figures = map[string]float64{}, map[string]float64{}
	for name, s := range l.held {
		m := l.router.measure(&s, l.routing, l.r.Top)
		losses[name] = m.loss
		for i, kind := range []string{"fixed", "position-aware"} {
			figures[fmt.Sprintf("%s recall %s", name, kind)] = m.recall[i]
			figures[fmt.Sprintf("%s first %s", name, kind)] = m.first[i]
			figures[fmt.Sprintf("%s probability %s", name, kind)] = m.mass[i]
			figures[fmt.Sprintf("%s tokens %s", name, kind)] = m.size[i]
		}
	}
	return losses, figures, nil
}

// hold drafts after held-out text, into l.held.
func (l *routerLearner) hold() {
	held := map[string]draftRows{}
	for _, t := range l.HeadTexts.Sources {
		var s draftRows
		r := rand.New(rand.NewPCG(l.r.Seed, 1))
		for _, c := range t.Texts[:min(routerTexts, len(t.Texts))] {
			text := c.Tokens
			var places []int
			for p := c.From; p < len(text)-1; p += routerEvery {
				places = append(places, p)
			}
			l.drafts.see(text, places, places, l.r.DraftSteps, r, &s)
		}
		held[t.Name] = s
	}
	l.held = held
}

// routed is the result of a router on some rows: with the same number of clusters at
// every step, and position-aware.
type routed struct {
	loss                      float64
	recall, first, mass, size [2]float64
}

func (r *Router) measure(s *draftRows, routing *shortlist.Routing, top int) *routed {
	r.tape.Detach()
	m := new(routed)
	n := len(s.tokens)
	labels := make([]float32, r.net.Clusters)
	idx, val := make([]int32, routing.Listed), make([]float32, routing.Listed)
	picked := make([]bool, r.net.Clusters)
	const part = 1024 // rows whose scores are in memory at a time
	for from := 0; from < n; from += part {
		scores := r.run(s, from, min(from+part, n))
		for i := range scores.Rows {
			row := from + i
			best, chance := s.best[row*top:(row+1)*top], s.chance[row*top:(row+1)*top]
			r.label(labels, best)
			for c, x := range scores.Row(i) {
				loss, _ := bce(x, labels[c])
				m.loss += loss / float64(n*top)
			}
			all := float32(0)
			for _, p := range chance {
				all += p
			}
			for k := range m.recall {
				o := shortlist.RoutedOptions{Clusters: routing.Listed, PositionAware: k == 1}
				clear(picked)
				size := len(routing.Always)
				budget := o.Budget(s.steps[row])
				for _, c := range idx[:simd.TopK(scores.Row(i), idx[:budget], val[:budget])] {
					picked[c] = true
					size += len(routing.Clusters[c])
				}
				m.size[k] += float64(size) / float64(n)
				for t, token := range best {
					if c := r.of[token]; c >= 0 && !picked[c] {
						continue
					}
					m.recall[k] += 1 / float64(n*top)
					m.mass[k] += float64(chance[t]/all) / float64(n)
					if t == 0 {
						m.first[k] += 1 / float64(n)
					}
				}
			}
		}
	}
	return m
}
