// The beginning of every report: the machine and the target.

package bench

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
)

// Setting describes where and with which target a report was made.
type Setting struct {
	Machine string `json:"machine"`
	Model   string `json:"model"`
	Pad     int64  `json:"pad"` // parameters that the model was padded to; 0: it is not padded

	Title       string    `json:"title,omitempty"`
	Parameters  int64     `json:"parameters"` // of the target, including padding
	WeightBytes int       `json:"weight_bytes"`
	Padding     string    `json:"padding,omitempty"` // in words
	Context     int       `json:"context"`
	Threads     int       `json:"threads"`
	Kernels     string    `json:"kernels"`
	Date        time.Time `json:"date"`
}

// NewSetting describes a target; name is used if the model has none of its own.
func NewSetting(m *model.Model, title, name string) Setting {
	c := &m.Config
	s := Setting{
		Machine: Machine(), Title: title, Model: cmp.Or(name, c.Name), Parameters: c.Parameters(), WeightBytes: m.WeightBytes(),
		Context: m.Context(),
		Threads: m.Threads(), Kernels: cpu.Active().String(), Date: time.Now().UTC().Truncate(time.Second),
	}
	if c.Padded > 0 {
		s.Pad = c.Parameters()
		s.Padding = fmt.Sprintf("from %.1f M to %.1f M parameters", float64(c.Parameters()-c.Padded)/1e6,
			float64(c.Parameters())/1e6)
	}
	return s
}

// line writes an entry of the list at the head of a report.
func line(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "- %s: "+format+"\n", append([]any{name}, args...)...)
}

// head writes the title and the first entries.
func (s *Setting) head(b *strings.Builder, title string) {
	fmt.Fprintf(b, "# %s\n\n", cmp.Or(s.Title, title))
	line(b, "model", "%s, %.1f M parameters, %.1f MB of weights a pass", cmp.Or(s.Model, "unnamed"),
		float64(s.Parameters)/1e6, float64(s.WeightBytes)/1e6)
	if s.Pad > 0 {
		line(b, "**padded**", "%s; the text is that of the model without padding, the cost that of the larger one", s.Padding)
	} else {
		line(b, "padding", "none")
	}
	line(b, "machine", "%s; %d threads, kernels %s", s.Machine, s.Threads, s.Kernels)
	line(b, "date", "%s", s.Date.Format("2006-01-02 15:04 MST"))
}
