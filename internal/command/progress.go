package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long work may take before a progress bar appears.
const patience = 400 * time.Millisecond

// sayEvery is the time between two lines if there is no bar.
const sayEvery = 30 * time.Second

// Progress shows the progress of long work, with the remaining time: as a bar on a terminal,
// elsewhere, for example in a log, as a line now and then.
type Progress struct {
	program     string
	w           io.Writer
	terminal    bool
	what        string
	bytes       bool
	start, said time.Time
	bar         *progressbar.ProgressBar
}

// Progress returns a bar with a label. If bytes is set, amounts are bytes.
func (p *Program) Progress(what string, bytes bool) *Progress {
	now := time.Now()
	return &Progress{program: p.Name, w: p.Stderr, terminal: IsTerminal(p.Stderr), what: what, bytes: bytes,
		start: now, said: now}
}

// Set says that done of total is done.
func (b *Progress) Set(done, total int64) {
	now := time.Now()
	if !b.terminal {
		b.say(now, done, total)
		return
	}
	if now.Sub(b.start) < patience {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetDescription(b.what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(false), // it would count work done before the bar appeared
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	text := []rune(b.description(now, done, total))
	if width, _ := TerminalSize(b.w); width > 0 { // a longer line would wrap, and remain when the next is drawn
		text = text[:min(len(text), max(0, width-len(" 100% ||   ")))]
	}
	b.bar.Describe(string(text))
	_ = b.bar.Set64(done)
}

// description says how much is done, and, after a second and a hundredth of the work, how long the
// rest will take.
func (b *Progress) description(now time.Time, done, total int64) string {
	text := b.what
	if b.bytes {
		text += fmt.Sprintf(", %s of %s", Size(done), Size(total))
	}
	if now.Sub(b.start) >= time.Second && done < total && done >= total/100 {
		text += fmt.Sprintf(", about %v left", b.left(now, done, total))
	}
	return text
}

// left returns how long the rest will take at the speed so far.
func (b *Progress) left(now time.Time, done, total int64) time.Duration {
	return time.Duration(float64(now.Sub(b.start)) * float64(total-done) / float64(done)).Round(time.Second)
}

// say writes a line, if the last was written long ago.
func (b *Progress) say(now time.Time, done, total int64) {
	if done <= 0 || now.Sub(b.said) < sayEvery {
		return
	}
	b.said = now
	fmt.Fprintf(b.w, "%s: %s: %d %% done, about %v left\n", b.program, b.what, 100*done/max(total, 1),
		b.left(now, done, total))
}

// End removes the bar.
func (b *Progress) End() {
	if b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f any) bool {
	file, ok := fileOf(f)
	return ok && term.IsTerminal(int(file.Fd()))
}

// fileOf returns the file behind standard input or output, if it is one.
func fileOf(f any) (file *os.File, ok bool) {
	if o, wrapped := f.(*output); wrapped {
		f = o.to
	}
	file, ok = f.(*os.File)
	return file, ok
}
