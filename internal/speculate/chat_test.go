package speculate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/lookup"
)

// recited is a target that writes a given text.
type recited struct {
	*clock
	vocab  int
	text   []int32
	cost   func(rows int) float64
	logits []float32
	last   int32
	clean  float64 // seconds that passes take on a quiet machine
}

func (t *recited) Vocab() int              { return t.vocab }
func (t *recited) Context() int            { return 1 << 30 }
func (t *recited) NewCache() Cache         { return new(stillCache) }
func (t *recited) CheckCache(Cache) error  { return nil }
func (t *recited) ForkCache(c Cache) Cache { fork := *c.(*stillCache); return &fork }
func (t *recited) NewPass() Pass           { return &recitedPass{t: t} }

type recitedPass struct {
	t    *recited
	rows []Rows
	at   []int
}

func (p *recitedPass) Tap(_, _, _ int) []float32 { return nil }
func (p *recitedPass) Run(_ context.Context, rows []Rows, _ []int) error {
	p.rows, p.at = rows, p.at[:0]
	n := 0
	for _, r := range rows {
		p.at = append(p.at, r.Cache.Len())
		n += r.Tree.Len()
	}
	p.t.spend(p.t.cost(n))
	return nil
}

func (p *recitedPass) Logits(s, i int) []float32 {
	r, t := p.rows[s], p.t
	t.logits[t.last] = 0
	t.last = t.text[min(p.at[s]+int(r.Tree.Depth[r.Logits[i]])+1, len(t.text)-1)]
	t.logits[t.last] = 60
	return t.logits
}

// chatText draws a prompt and an answer with words as rare as in a natural language. Text quotes
// phrases from what precedes it: quoted is the share of quoted tokens.
func chatText(rng *rand.Rand, words, length int, quoted float64) (text []int32, prompt int) {
	prompt = 30 + rng.IntN(60)
	for len(text) < prompt+length {
		if from := rng.IntN(len(text) + 1); len(text) > 10 && rng.Float64() < quoted/6 {
			phrase := text[from:min(from+2+rng.IntN(8), len(text))]
			text = append(text, phrase...)
			continue
		}
		text = append(text, int32(math.Pow(float64(words), rng.Float64()))%int32(words)) // rank r is as frequent as 1/r
	}
	return text[:prompt+length], prompt
}

// On a busy machine, whatever rows cost, an answer that quotes little takes hardly longer with
// lookup than plainly, even if it is short and the process is new. The times that the passes would
// take on a quiet machine are compared.
func TestAnswersThatQuoteLittleLoseLittle(t *testing.T) {
	const words, texts = 512, 60
	// As measured for a model of 135M parameters: three rows cost little, eight more than twice a pass.
	knots := []struct{ rows, cost float64 }{{1, 1}, {3, 1.09}, {5, 1.74}, {8, 2.36}, {16, 4.48}, {1e4, 2800}}
	knee := func(n int) float64 {
		k := 1
		for float64(n) > knots[k].rows {
			k++
		}
		a, b := knots[k-1], knots[k]
		return a.cost + (b.cost-a.cost)*(float64(n)-a.rows)/(b.rows-a.rows)
	}
	for name, cost := range map[string]func(n int) float64{
		"knee":  knee,
		"cheap": func(n int) float64 { return 1 + .03*float64(n-1) },
		"dear":  func(n int) float64 { return 1 + .25*float64(n-1) },
	} {
		for _, quoted := range []float64{0, .1, .3} {
			for _, length := range []int{16, 128} {
				var ratios []float64
				plain, took := 0.0, 0.0
				for seed := range uint64(texts) {
					rng := rand.New(rand.NewPCG(seed, 7))
					text, prompt := chatText(rng, words, length, quoted)
					pace := 1.0
					target := &recited{clock: &clock{}, vocab: words, text: text, logits: make([]float32, words)}
					target.cost = func(n int) float64 {
						clean := 25 * ms * cost(n)
						target.clean += clean
						if rng.Float64() < .03 {
							pace = .6 + rng.Float64()
						}
						noise := pace * (1 + .3*rng.Float64())
						if rng.Float64() < .1 {
							noise *= 1 + 2*rng.Float64()
						}
						return clean * noise
					}
					drafter, err := lookup.New(lookup.Default())
					if err != nil {
						t.Fatal(err)
					}
					l, err := New(target, drafter, Options{})
					if err != nil {
						t.Fatal(err)
					}
					l.now = target.now
					s, err := l.Start(text[:prompt], Request{MaxTokens: length})
					if err != nil {
						t.Fatal(err)
					}
					for len(s.Output()) == 0 {
						if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
							t.Fatal(err)
						}
					}
					target.clean = 0
					finish(t, l, s)
					s.Close()
					p := 25 * ms * float64(length-1)
					plain = plain + p
					took = took + target.clean
					ratios = append(ratios, p/target.clean)
				}
				slices.Sort(ratios)
				if median, tenth := ratios[texts/2], ratios[texts/10]; plain/took < .97 || median < .97 || tenth < .93 {
					t.Errorf("passes %s, %g quoted, %d tokens: %.3f of plain decoding's speed in all, median %.3f, a tenth below %.3f: want .97, .97 and .93",
						name, quoted, length, plain/took, median, tenth)
				}
			}
		}
	}
}
