package report

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/inside"
)

// Options say what to report on.
type Options struct {
	Model     *grove.Model
	ModelName string // where the model has none
	Version   string // of the program
	Dir       string // the report's folder, which is made
	Quick     bool
	Data      string // folder of the suites' data
	GoRoot    string // Go toolchain whose library the suite go reads
	// flags and files that the model was opened with: results of others, and of files as they were before, are not taken
	Opened []string

	Log      func(format string, args ...any) // told which results were there already; may be nil
	Progress func(done, total int)            // in parts of about equal work; may be nil
}

// size is how much is measured.
type size struct {
	Prompts, WarmUp, Tokens  int
	Queries                  int // of adaptation
	Requests, Rounds, Length int // of load: requests of a caller, measurements, tokens of a prompt
}

var (
	quickSize = size{Prompts: 2, Tokens: 64, Queries: 30, Requests: 1, Rounds: 1, Length: 64}
	fullSize  = size{Prompts: 8, WarmUp: 1, Tokens: 128, Queries: 200, Requests: 2, Rounds: 3, Length: 64}
)

// Report is what all experiments found.
type Report struct {
	bench.Setting
	Version string    `json:"version"`
	Quick   bool      `json:"quick"`
	Results []*Result `json:"results"`
}

// Result is what an experiment found.
type Result struct {
	Experiment
	Command string   `json:"command"`
	Left    []string `json:"left_out,omitempty"` // suites and methods, each with the reason
	Seconds float64  `json:"seconds"`

	Spec  *bench.SpecReport  `json:"spec,omitempty"`
	Adapt *bench.AdaptReport `json:"adapt,omitempty"`
	Serve *bench.ServeReport `json:"serve,omitempty"`

	Findings []Finding `json:"findings"`
}

// Run runs the experiments and writes report.html and report.json into the folder, and a folder for
// each experiment. Results that are there already, of the same program, model and experiment, are
// taken as they are. When ctx ends, the page has the experiments that were finished, and comes with
// the error.
func Run(ctx context.Context, o Options, experiments []Experiment) (*Report, error) {
	s := fullSize
	if o.Quick {
		s = quickSize
	}
	r := &Report{Setting: bench.NewSetting(inside.Target(o.Model).Model, "", o.ModelName),
		Version: o.Version, Quick: o.Quick}
	total, before := 0, 0
	for i := range experiments {
		total += experiments[i].work(&s)
	}
	var failed error
	for i := range experiments {
		e := experiments[i]
		progress := func(done, of int) {
			if o.Progress != nil && of > 0 {
				o.Progress(before+e.work(&s)*done/of, total)
			}
		}
		result, err := o.result(ctx, e, &s, progress)
		if err != nil {
			failed = fmt.Errorf("%s: %w", e.Title, err)
			break
		}
		r.Results = append(r.Results, result)
		before += e.work(&s)
	}
	if len(r.Results) == 0 {
		return r, failed
	}
	if err := r.save(o.Dir); failed == nil {
		failed = err
	}
	return r, failed
}

// work is about how much there is to do, in generations.
func (e *Experiment) work(s *size) int {
	switch e.Kind {
	case kindAdapt:
		return s.Queries * len(e.Policies)
	case kindServe:
		n := 0
		for _, c := range e.Clients {
			n += c * s.Requests * s.Rounds * len(e.Methods)
		}
		return n
	}
	return len(e.Suites) * len(e.Methods) * len(e.Budgets) * len(e.Temperatures) * (s.Prompts + s.WarmUp)
}

// result runs an experiment, unless its result is there.
func (o *Options) result(ctx context.Context, e Experiment, s *size, progress func(done, total int)) (*Result, error) {
	dir := filepath.Join(o.Dir, e.Name)
	return once(filepath.Join(dir, "result.json"), o.key(&e, s), o.Log, func() (*Result, error) {
		r := &Result{Experiment: e, Command: e.command(s)}
		began := time.Now()
		var err error
		switch e.Kind {
		case kindAdapt:
			err = o.adapt(ctx, r, s, progress)
		case kindServe:
			err = o.serve(ctx, r, s, progress)
		default:
			err = o.spec(ctx, r, s, progress)
		}
		if err != nil {
			return nil, err
		}
		r.Seconds = time.Since(began).Seconds()
		for _, order := range e.Orders {
			r.Findings = append(r.Findings, r.judge(order))
		}
		switch {
		case r.Spec != nil:
			_, err = r.Spec.Save(dir, nil, nil)
		case r.Adapt != nil:
			_, err = r.Adapt.Save(dir)
		case r.Serve != nil:
			_, err = r.Serve.Figures(dir)
		}
		return r, err
	})
}

// once returns the value that an earlier call with the same key wrote into the file. Where there is
// none it calls measure, and writes what that returns.
func once[T any](file, key string, log func(format string, args ...any), measure func() (T, error)) (T, error) {
	var kept struct {
		Key   string `json:"key"` // of everything that the value depends on
		Value T      `json:"value"`
	}
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &kept) == nil && kept.Key == key {
		if log != nil {
			log("taken from %s", file)
		}
		return kept.Value, nil
	}
	var err error
	if kept.Value, err = measure(); err != nil {
		return kept.Value, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return kept.Value, err
	}
	kept.Key = key
	return kept.Value, atomicfile.WriteJSON(file, kept)
}

// key tells results apart that are not of the same program, model, machine and experiment.
func (o *Options) key(e *Experiment, s *size) string {
	m, h := inside.Target(o.Model).Model, fnv.New64a()
	opened := slices.Clone(o.Opened)
	for i, name := range opened {
		if info, err := os.Stat(name); err == nil {
			opened[i] += info.ModTime().String()
		}
	}
	_ = json.NewEncoder(h).Encode([]any{e, s, opened, o.Data}) // a hash takes everything
	return fmt.Sprintf("%s, %s, %d parameters, %d threads, %s, %x", o.Version, o.ModelName,
		m.Config.Parameters(), m.Threads(), bench.Machine(), h.Sum64())
}

// suites opens those that there are.
func (o *Options) suites(r *Result, s *size) (all []bench.Suite) {
	for _, name := range r.Suites {
		suite, err := bench.OpenSuite(name, bench.SuiteOptions{Data: o.Data, GoRoot: o.GoRoot, N: s.Prompts, Spare: s.WarmUp})
		if err != nil {
			r.leave("suite "+name, err)
			continue
		}
		all = append(all, suite)
	}
	return all
}

func (r *Result) leave(what string, reason error) {
	r.Left = append(r.Left, fmt.Sprintf("%s: %v", what, reason))
}

// methods are those of the experiment whose drafters can be opened.
func (o *Options) methods(r *Result) ([]bench.Method, error) {
	texts, base := r.Methods, bench.Method{Uncontrolled: !r.Controller}
	if len(r.Budgets) == 1 {
		base.Budget = r.Budgets[0]
	} else {
		var budgets []string
		for _, b := range r.Budgets {
			budgets = append(budgets, fmt.Sprintf("budget=%d", b))
		}
		texts = bench.Cross(texts, budgets, "budget=")
	}
	all, err := bench.ParseMethods(texts, base)
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	return slices.DeleteFunc(all, func(m bench.Method) bool {
		if m.Drafter == "" {
			return false
		}
		_, err := registry.New(m.Drafter, inside.Target(o.Model))
		if err != nil && !missing[m.Drafter] {
			missing[m.Drafter] = true
			r.leave(strings.SplitN(m.Name, "@", 2)[0], err)
		}
		return err != nil
	}), nil
}

func (o *Options) spec(ctx context.Context, r *Result, s *size, progress func(done, total int)) error {
	methods, err := o.methods(r)
	if err != nil {
		return err
	}
	spec := bench.SpecOptions{
		Target: inside.Target(o.Model), ModelName: o.ModelName, Title: r.Title,
		Temperatures: r.Temperatures, MaxTokens: s.Tokens,
		Progress: func(p bench.SpecProgress) { progress(p.Done, p.Total) },
	}
	for _, suite := range o.suites(r, s) {
		spec.Runs = append(spec.Runs, bench.SpecRun{Suite: suite, Methods: methods})
	}
	if len(spec.Runs) == 0 || len(methods) < 2 {
		return nil // nothing to compare: the page says what was left out
	}
	r.Spec, err = bench.Spec(ctx, spec)
	return err
}

func (o *Options) adapt(ctx context.Context, r *Result, s *size, progress func(done, total int)) error {
	if _, err := registry.New(r.Methods[0], inside.Target(o.Model)); err != nil {
		r.leave(r.Methods[0], err)
		return nil
	}
	stream, err := bench.OpenStream(r.Suites[0], s.Queries, 0, bench.SuiteOptions{Data: o.Data, GoRoot: o.GoRoot})
	if err != nil {
		r.leave("stream "+r.Suites[0], err)
		return nil
	}
	r.Adapt, err = bench.Adapt(ctx, bench.AdaptOptions{
		Target: inside.Target(o.Model), ModelName: o.ModelName, Title: r.Title, Drafter: r.Methods[0],
		Streams: []bench.Stream{stream}, Policies: r.Policies,
		MaxTokens: s.Tokens, Adapt: adapt.Options{Threads: 1, Tuning: adapt.DefaultTuning()}, Progress: progress,
	})
	return err
}

func (o *Options) serve(ctx context.Context, r *Result, s *size, progress func(done, total int)) error {
	suites := o.suites(r, &size{Prompts: 2 * slices.Max(r.Clients)})
	if len(suites) == 0 {
		return nil
	}
	methods, err := bench.ParseMethods(r.Methods, bench.Method{})
	if err != nil {
		return err
	}
	load := bench.ServeOptions{
		Model: o.Model, ModelName: o.ModelName, Methods: methods, Clients: r.Clients,
		Requests: s.Requests, Rounds: s.Rounds,
		Request: grove.Request{MaxTokens: s.Tokens, IgnoreEnd: true, Sampling: grove.Sampling{Seed: 1}}, Progress: progress,
	}
	for _, prompt := range suites[0].Prompts {
		tokens, err := o.Model.Tokenize(prompt.Text)
		if err != nil {
			return err
		}
		load.Prompts = append(load.Prompts, tokens[:min(len(tokens), s.Length)])
	}
	r.Serve, err = bench.Serve(ctx, load)
	return err
}

// save writes the page and its JSON.
func (r *Report) save(dir string) error {
	if err := atomicfile.WriteJSON(filepath.Join(dir, "report.json"), r); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "report.html"), func(w io.Writer) error { return r.HTML(w, dir) })
}
