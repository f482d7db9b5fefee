package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long work may take before a progress bar appears.
const patience = 400 * time.Millisecond

// progress shows how far long work is, with the time it will still take, on a terminal; elsewhere it
// shows nothing.
type progress struct {
	w     io.Writer
	what  string
	bytes bool
	start time.Time
	bar   *progressbar.ProgressBar
}

// progress returns a bar named what. With bytes, amounts are bytes.
func (p *program) progress(what string, bytes bool) *progress {
	b := &progress{what: what, bytes: bytes, start: time.Now()}
	if isTerminal(p.stderr) {
		b.w = p.stderr
	}
	return b
}

// set says that done of total is done.
func (b *progress) set(done, total int64) {
	if b.w == nil || time.Since(b.start) < patience {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetDescription(b.what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowBytes(b.bytes),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = b.bar.Set64(done)
}

// end removes the bar.
func (b *progress) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
