// The memory that a method needs.

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/speculate"
)

// MemoryReport is the memory of one method, decoding one prompt in a process that does nothing else.
type MemoryReport struct {
	Method string `json:"method"`
	Loaded int64  `json:"loaded_bytes"` // resident after the models were loaded
	Peak   int64  `json:"peak_bytes"`   // maximum resident while decoding: weights, caches, buffers, the program
	Tokens int    `json:"tokens"`
}

var errNoMemory = errors.New("this system does not say what a process has resident (/proc/self/status): memory is measured on Linux")

// Memory decodes a prompt with the method of o's only run, and watches the process. Models' caches
// keep memory that they once had, so the figures are the method's own only in a process that has
// not decoded before.
func Memory(ctx context.Context, o SpecOptions) (r MemoryReport, err error) {
	if len(o.Runs) != 1 || len(o.Runs[0].Methods) != 1 || len(o.Runs[0].Suite.Prompts) != 1 {
		return r, fmt.Errorf("bench: memory is measured of one method on one prompt")
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	m := o.Runs[0].Methods[0]
	r.Method = m.Name
	b := &bench{o: o}
	encode, err := b.encoder()
	if err != nil {
		return r, err
	}
	prompt, _, err := encode(o.Runs[0].Suite.Prompts[0])
	if err != nil {
		return r, err
	}
	l, err := b.lane(m, o.Sampling, speculate.NewController())
	if err != nil {
		return r, err
	}
	// Garbage not yet collected is not needed: collect often.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	debug.FreeOSMemory()
	var ok bool
	r.Loaded, ok = resident("VmRSS")
	if !ok {
		return r, errNoMemory
	}
	// Loading used more memory than now remains: forget that peak (proc(5), clear_refs).
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return r, fmt.Errorf("%w: %v", errNoMemory, err)
	}
	g, err := l.generate(ctx, prompt, o.Sampling.Seed)
	if err != nil {
		return r, err
	}
	r.Tokens = len(g.tokens)
	r.Peak, ok = resident("VmHWM")
	if !ok {
		return r, errNoMemory
	}
	runtime.KeepAlive(l)
	return r, nil
}

// resident reads a size from the process's status.
func resident(key string) (int64, bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
