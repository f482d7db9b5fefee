// The measurements behind the tables of docs/benchmarks: commands of grove, run again and again
// until each has all of its runs.

package report

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Measurement is commands of grove, and tables of what they print as JSON.
type Measurement struct {
	Name     string    `json:"name"` // of its file
	About    string    `json:"about"`
	Commands []Command `json:"commands"`
	Seconds  float64   `json:"seconds"`        // that a run of all commands takes about, on two cores
	Runs     int       `json:"runs,omitempty"` // of each command; 0: one, of figures that do not depend on the machine
	Tables   []View    `json:"tables"`
}

// Command is one command of a measurement.
type Command struct {
	Labels []string `json:"labels,omitempty"` // the first labels of its rows
	Args   string   `json:"args"`             // of grove, separated by spaces; $NAME is a variable of the environment
}

// View is a table: which objects of the commands' JSON are its rows, and which of their fields are its columns.
type View struct {
	Name    string   `json:"name"`   // of its marks in the documents
	Labels  []string `json:"labels"` // above the rows' labels, those of the command included
	Rows    []string `json:"rows"`   // LIST.FIELD... from the outermost list to the innermost; each FIELD is a label
	Columns []Column `json:"columns"`
	Across  bool     `json:"across,omitempty"`  // the first label is part of the columns
	Without []string `json:"without,omitempty"` // last labels of rows that documents do not show
}

// Column is a column of a view.
type Column struct {
	Head   string  `json:"head"`
	Field  string  `json:"field"`            // of the row's object or of one around it; A.B is field B of object A
	Format string  `json:"format"`           // as fmt has it
	Scale  float64 `json:"scale,omitempty"`  // a factor; 0: 1
	Over   string  `json:"over,omitempty"`   // divided by the figure of the row whose last label this is
	Stored bool    `json:"stored,omitempty"` // only in the stored result, not in documents
}

//go:embed measurements.json
var measurementsJSON []byte

// Measurements lists what docs/benchmarks is made of.
func Measurements() []Measurement {
	var all []Measurement
	if err := decode(measurementsJSON, &all); err != nil {
		panic(fmt.Sprintf("report: measurements.json: %v", err)) // a programmer's mistake, which the tests find
	}
	return all
}

// decode reads JSON whose fields are all known.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// TotalSeconds is what all runs take about, on two cores.
func (m *Measurement) TotalSeconds() float64 { return m.Seconds * float64(max(m.Runs, 1)) }

// words are the arguments, with variables replaced by their values.
func (c *Command) words() []string {
	args := strings.Fields(c.Args)
	for i, a := range args {
		args[i] = os.Expand(a, func(name string) string {
			if value := os.Getenv(name); value != "" || name != "GROVE_DATA" {
				return value
			}
			return "../shared/data" // where all commands look for it
		})
	}
	return args
}

// program is the name of the program whose command it is.
func (c *Command) program() string {
	if strings.HasPrefix(c.Args, "check ") {
		return "grove-lab"
	}
	return "grove"
}

// line is the command as one types it.
func (c *Command) line() string {
	args := strings.Fields(c.Args)
	for i, a := range args {
		args[i] = quote(a)
		if strings.Contains(a, "$") {
			args[i] = `"` + a + `"` // the shell puts the variable in
		}
	}
	return c.program() + " " + strings.Join(args, " ") + " --json"
}

// MeasureOptions say how to measure.
type MeasureOptions struct {
	// Run runs grove, or grove-lab, with the arguments, and returns what it prints.
	Run func(ctx context.Context, program string, args []string) ([]byte, error)

	Dir     string // where each run is kept, which is made
	Machine string
	Commit  string // that the program is of
	Go      string // that it was built with
	Threads int

	Log      func(format string, args ...any)      // told which runs were there already; may be nil
	Progress func(what string, left time.Duration) // called before each run; may be nil
}

// task is one run of one command.
type task struct {
	*Measurement
	command, round int
}

// kept is what a run of a command printed.
type kept struct {
	Date    time.Time       `json:"date"`
	Seconds float64         `json:"seconds"`
	Output  json.RawMessage `json:"output"`
}

// Measure runs the commands. Every command runs once before one runs again, so that a slow quarter
// of an hour is part of all tables. Runs that are in the folder already, of the same program,
// machine and command, are taken as they are. Where commands fail or ctx ends, the measurements
// that are complete come with the error.
func Measure(ctx context.Context, o MeasureOptions, list []Measurement) (all []*Measured, failed error) {
	var tasks []task
	left := 0.0                 // seconds: of tasks to come
	expected, taken := 0.0, 0.0 // of those done, as expected and as measured
	for i := range list {
		for k := range list[i].Commands {
			for round := range max(list[i].Runs, 1) {
				tasks = append(tasks, task{&list[i], k, round})
				left += list[i].commandSeconds()
			}
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return a.round - b.round })
	outputs := map[string][]kept{} // by measurement, command by command within a round
	broken := map[string]bool{}
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		if !broken[t.Name] {
			pace := 1.0
			if taken > 0 {
				pace = taken / expected
			}
			run, err := o.run(ctx, t, time.Duration(left*pace*float64(time.Second)))
			if err != nil {
				broken[t.Name] = true
				failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", t.Name, t.Commands[t.command].line(), err))
			} else {
				outputs[t.Name] = append(outputs[t.Name], run)
				expected, taken = expected+t.commandSeconds(), taken+run.Seconds
			}
		}
		left -= t.commandSeconds()
	}
	if ctx.Err() != nil {
		failed = ctx.Err() // and not what commands made of it
	}
	for i := range list {
		m := &list[i]
		if len(outputs[m.Name]) < max(m.Runs, 1)*len(m.Commands) {
			continue
		}
		result, err := m.read(outputs[m.Name])
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		result.Machine, result.Threads = o.Machine, o.Threads
		result.Commit, result.Go = o.Commit, o.Go
		all = append(all, result)
	}
	return all, failed
}

// commandSeconds is what one run of one command takes about.
func (m *Measurement) commandSeconds() float64 { return m.Seconds / float64(len(m.Commands)) }

// run runs a task, unless its output is there.
func (o *MeasureOptions) run(ctx context.Context, t task, left time.Duration) (kept, error) {
	c := &t.Commands[t.command]
	file := filepath.Join(o.Dir, fmt.Sprintf("%s-%d-%d.json", t.Name, t.command+1, t.round+1))
	return once(file, o.key(c), o.Log, func() (kept, error) {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%s, run %d of %d: %s", t.Name, t.round+1, max(t.Runs, 1), c.line()), left)
		}
		began := time.Now()
		out, err := o.Run(ctx, c.program(), append(c.words(), "--json"))
		return kept{began.UTC().Truncate(time.Second), time.Since(began).Seconds(), out}, err
	})
}

// key tells runs apart that are not of the same program, machine and command.
func (o *MeasureOptions) key(c *Command) string {
	return fmt.Sprintf("%s, %d threads, %s, %s", o.Commit, o.Threads, o.Machine, strings.Join(c.words(), " "))
}
