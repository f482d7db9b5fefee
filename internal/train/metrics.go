package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// metrics is the run's JSON lines, one per step. A run that resumes from a checkpoint first drops
// the lines of steps that it will repeat.
type metrics struct{ f *os.File }

// lastMeasures returns the last line, with the last measures of held-out text, if there are any.
func lastMeasures(path string) (last Progress, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return last, err
	}
	for line := range bytes.Lines(b) {
		var l Progress
		if err := json.Unmarshal(line, &l); err != nil {
			return last, fmt.Errorf("%s: %w", path, err)
		}
		if len(l.Validation) == 0 {
			l.Validation, l.Figures = last.Validation, last.Figures
		}
		last = l
	}
	return last, nil
}

func openMetrics(path string, step int) (*metrics, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	keep := 0
	for line := range bytes.Lines(b) {
		var m Progress
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &m) != nil || m.Step > step {
			break // this also drops a line cut short
		}
		keep += len(line)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(keep)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &metrics{f}, nil
}

func (m *metrics) write(p Progress) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = m.f.Write(append(b, '\n'))
	return err
}

func (m *metrics) Close() error { return m.f.Close() }
