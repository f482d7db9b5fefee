package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/speculate"
)

// ServeOptions specify what callers of one model do at the same time.
type ServeOptions struct {
	Model     *grove.Model
	ModelName string    // for the report, if the model has none
	Prompts   [][]int32 // callers take them in turn
	Methods   []Method  // includes plain decoding; none has a Prefix or Memory
	Clients   []int     // callers at the same time; always includes 1
	Requests  int       // of each measurement, for each caller
	Request   grove.Request
	Rounds    int    // measurements of each; they take turns
	Schema    string // a JSON schema whose masks are measured too; may be empty

	Progress func(done, total int) // called after each measurement; may be nil
}

// ServeReport has the results of callers of one engine.
type ServeReport struct {
	Setting
	Tokens int           `json:"max_tokens"`
	Rounds int           `json:"rounds"`
	Rows   []ServeResult `json:"rows"`
	Loop   []ServeLoop   `json:"loop"`
	Masks  []MaskCost    `json:"masks,omitempty"`
}

// ServeResult is the result of a number of callers with one drafter: medians over all rounds.
type ServeResult struct {
	Drafter   string  `json:"drafter"`
	Clients   int     `json:"clients"`
	PerSecond float64 `json:"tokens_per_s"`   // of all callers together
	OverOne   float64 `json:"over_one"`       // relative to one caller with this drafter
	OverPlain float64 `json:"over_plain"`     // relative to as many callers without a drafter
	FirstMS   float64 `json:"first_token_ms"` // median
	GapMS     float64 `json:"gap_ms"`         // between two chunks of a caller, median
	GapP99MS  float64 `json:"gap_p99_ms"`
	Tau       float64 `json:"tau"`
	Different int     `json:"different"` // texts that differ from those of one caller without a drafter
}

// ServeLoop compares one caller of the engine with package speculate's loop alone.
type ServeLoop struct {
	Drafter string  `json:"drafter"`
	Ratio   float64 `json:"engine_over_loop"` // tokens per second after the first, engine's over loop's
}

// Serve measures callers of one model.
func Serve(ctx context.Context, o ServeOptions) (*ServeReport, error) {
	o.Clients = append([]int{1}, slices.DeleteFunc(slices.Clone(o.Clients), func(n int) bool { return n == 1 })...)
	plain := slices.IndexFunc(o.Methods, func(m Method) bool { return m.Drafter == "" })
	first := []Method{o.Methods[plain]} // the other methods' texts and speed are compared with its own
	o.Methods = append(first, slices.Delete(slices.Clone(o.Methods), plain, plain+1)...)
	inside.RequestOptionsOf(&o.Request).FreshPrompt = true
	r := &ServeReport{Setting: NewSetting(inside.Target(o.Model).Model, "", o.ModelName),
		Tokens: o.Request.MaxTokens, Rounds: o.Rounds}
	texts := make([][]int32, len(o.Prompts)) // of one caller without a drafter
	measured := map[string][]load{}
	ratios := map[string][]float64{}
	masks, err := o.newMasks()
	if err != nil {
		return nil, err
	}
	done := 0
	for range o.Rounds {
		for i := range o.Methods {
			m := &o.Methods[i]
			alone, err := o.loopSpeed(ctx, m)
			if err != nil {
				return nil, err
			}
			if err := masks[m.Name].measure(ctx, o.Prompts, o.Requests); err != nil {
				return nil, err
			}
			for _, n := range o.Clients {
				l, err := o.load(ctx, m, n, texts)
				if err != nil {
					return nil, err
				}
				if n == 1 {
					ratios[m.Name] = append(ratios[m.Name], l.decoding/alone)
				}
				key := fmt.Sprint(m.Name, " ", n)
				measured[key] = append(measured[key], l)
				done++
				if o.Progress != nil {
					o.Progress(done, o.Rounds*len(o.Methods)*len(o.Clients))
				}
			}
		}
	}
	speeds := map[string]float64{}
	for _, m := range o.Methods {
		for _, n := range o.Clients {
			key := fmt.Sprint(m.Name, " ", n)
			row := summarise(measured[key])
			row.Drafter, row.Clients = m.Name, n
			speeds[key] = row.PerSecond
			row.OverOne = row.PerSecond / speeds[fmt.Sprint(m.Name, " ", 1)]
			row.OverPlain = row.PerSecond / speeds[fmt.Sprint(o.Methods[0].Name, " ", n)]
			r.Rows = append(r.Rows, row)
		}
		r.Loop = append(r.Loop, ServeLoop{m.Name, median(ratios[m.Name])})
		if k := masks[m.Name]; k != nil {
			r.Masks = append(r.Masks, k.cost(m.Name))
		}
	}
	return r, nil
}

// load is one measurement.
type load struct {
	perSecond float64
	decoding  float64 // the same for each caller, after its first token
	first     []float64
	gaps      []float64
	committed int
	rounds    int
	different int
}

// load runs n callers, each of which makes its requests one after another.
func (o *ServeOptions) load(ctx context.Context, m *Method, n int, texts [][]int32) (load, error) {
	var mu sync.Mutex
	var l load
	var failed error
	tokens, decoded := 0, 0
	decoding := time.Duration(0)
	var wg sync.WaitGroup
	began := fineclock.Now()
	for c := range n {
		wg.Go(func() {
			for i := range o.Requests {
				p := (c*o.Requests + i) % len(o.Prompts)
				r := o.Request
				r.Drafter, r.Budget = cmp.Or(m.Drafter, Plain), m.Budget
				r.Uncontrolled = m.Uncontrolled
				inside.RequestOptionsOf(&r).Accept = m.Accept
				start := fineclock.Now()
				last := start
				var first float64
				var gaps []float64
				var result *grove.Result
				for chunk, err := range o.Model.GenerateTokens(ctx, o.Prompts[p], r) {
					if err != nil {
						mu.Lock()
						failed = err
						mu.Unlock()
						return
					}
					now := fineclock.Now()
					if last == start {
						first = now.Sub(start).Seconds()
					} else {
						gaps = append(gaps, now.Sub(last).Seconds())
					}
					last, result = now, chunk.Result
				}
				mu.Lock()
				l.first, l.gaps = append(l.first, first), append(l.gaps, gaps...)
				tokens += len(result.Tokens)
				decoded, decoding = decoded+len(result.Tokens)-1, decoding+inside.Stats(result).Decode
				l.committed, l.rounds = l.committed+inside.Stats(result).Committed, l.rounds+inside.Stats(result).Rounds
				switch {
				case texts[p] == nil:
					texts[p] = result.Tokens
				case !slices.Equal(texts[p], result.Tokens):
					l.different++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	l.perSecond = float64(tokens) / fineclock.Since(began).Seconds()
	l.decoding = float64(decoded) / decoding.Seconds()
	return l, failed
}

// loop decodes as a method does, without the engine.
func (o *ServeOptions) loop(target speculate.Target, m *Method) (*speculate.Loop, error) {
	var d draft.Drafter
	if m.Drafter != "" {
		var err error
		if d, err = registry.New(m.Drafter, inside.Target(o.Model)); err != nil {
			return nil, err
		}
	}
	return speculate.New(target, d, speculate.Options{Budget: m.Budget, Accept: m.Accept, Uncontrolled: m.Uncontrolled})
}

// loopSpeed returns the tokens per second, after the first, at which the loop alone decodes one caller's requests.
func (o *ServeOptions) loopSpeed(ctx context.Context, m *Method) (float64, error) {
	loop, err := o.loop(speculate.Model(inside.Target(o.Model).Model), m)
	if err != nil {
		return 0, err
	}
	r := speculate.Request{Sampling: o.Request.Sampling, MaxTokens: o.Request.MaxTokens}
	decoded, decoding := 0, time.Duration(0)
	for i := range o.Requests {
		s, err := finish(ctx, loop, o.Prompts[i%len(o.Prompts)], r)
		if err != nil {
			return 0, err
		}
		decoded, decoding = decoded+len(s.Output())-1, decoding+s.Stats().Decode
		s.Close()
	}
	return float64(decoded) / decoding.Seconds(), nil
}

// finish steps a new sequence to its end, or to the error that it ends with. The caller closes it.
func finish(ctx context.Context, loop *speculate.Loop, prompt []int32, r speculate.Request) (*speculate.Sequence, error) {
	s, err := loop.Start(prompt, r)
	if err != nil {
		return nil, err
	}
	for one := []*speculate.Sequence{s}; err == nil && s.Finish() == speculate.Running; {
		err = loop.Step(ctx, one)
	}
	if err := cmp.Or(err, s.Err()); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// summarise takes medians over measurements.
func summarise(list []load) (r ServeResult) {
	var speeds, first, gaps []float64
	committed, rounds := 0, 0
	for _, l := range list {
		speeds = append(speeds, l.perSecond)
		first, gaps = append(first, l.first...), append(gaps, l.gaps...)
		committed, rounds = committed+l.committed, rounds+l.rounds
		r.Different += l.different
	}
	slices.Sort(gaps)
	r.PerSecond, r.FirstMS = median(speeds), 1000*median(first)
	if len(gaps) > 0 {
		r.GapMS, r.GapP99MS = 1000*gaps[len(gaps)/2], 1000*gaps[len(gaps)*99/100]
	}
	r.Tau = float64(committed) / float64(max(rounds, 1))
	return r
}

// Figures draws the tokens per second by callers into a folder, which it makes: load. It returns the files' names.
func (r *ServeReport) Figures(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	c := r.newChart("tokens a second of all callers", "callers", "tokens/s")
	lines := map[string]plotter.XYs{}
	var names []string
	for _, row := range r.Rows {
		if lines[row.Drafter] == nil {
			names = append(names, row.Drafter)
		}
		lines[row.Drafter] = append(lines[row.Drafter], plotter.XY{X: float64(row.Clients), Y: row.PerSecond})
	}
	for i, name := range names {
		slices.SortFunc(lines[name], byX)
		if err := c.line(i, name, lines[name]); err != nil {
			return nil, err
		}
	}
	c.Y.Min = 0
	return c.save(dir, "load")
}
