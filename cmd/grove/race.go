package main

import (
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
)

// lane is one of several generations that take turns.
type lane struct {
	title  string
	chunks iter.Seq2[grove.Chunk, error]

	result *grove.Result // its times are this lane's only
	pieces []grove.Piece
	all    int           // tokens so far
	tokens int           // tokens after the first round
	clock  time.Duration // time that these tokens took
}

// perSecond returns the lane's speed, without the prompt and the first token.
func (l *lane) perSecond() float64 {
	if l.clock == 0 {
		return 0
	}
	return float64(l.tokens) / l.clock.Seconds()
}

// speed returns the lane's progress as text.
func (l *lane) speed() string {
	return fmt.Sprintf("%d tokens, %.1f tokens/s", l.all, l.perSecond())
}

// race runs lanes to their ends. They take turns, a round at a time: the lane that has used the least
// time goes next. So each advances as it would alone, anything that slows the machine down slows all
// of them, and a lane is charged only for its own rounds. after is called after each round.
func race(lanes []*lane, after func()) error {
	var nexts []func() (grove.Chunk, error, bool)
	for _, l := range lanes {
		next, stop := iter.Pull2(l.chunks)
		defer stop()
		nexts = append(nexts, next)
	}
	begun := make([]bool, len(lanes))
	for {
		at := -1
		for i, l := range lanes {
			if l.result == nil && (at < 0 || !begun[i] && begun[at] || begun[i] == begun[at] && l.clock < lanes[at].clock) {
				at = i
			}
		}
		if at < 0 {
			return nil
		}
		l := lanes[at]
		start := time.Now()
		c, err, ok := nexts[at]()
		took := time.Since(start)
		if err == nil && !ok {
			err = fmt.Errorf("the generation ended without a result")
		}
		if err != nil {
			return err
		}
		if begun[at] { // the time to the first token depends on the prompt
			l.clock += took
			l.tokens += len(c.Tokens)
		}
		begun[at] = true
		l.all += len(c.Tokens)
		l.pieces = append(l.pieces, c.Pieces...)
		l.result = c.Result
		if l.result != nil {
			inside.Stats(l.result).Decode = l.clock
		}
		after()
	}
}

// leastLane is the number of columns that a lane needs to be readable, and frameTime the time between two frames.
const (
	leastLane = 36
	frameTime = 40 * time.Millisecond
)

// screen redraws two lanes in place: side by side if there is room, otherwise one above the other.
type screen struct {
	w       io.Writer
	style   command.Style
	width   int // of a lane
	height  int // maximum number of lines of a lane's text
	stacked bool

	lines int // of a lane's text, in the last frame
	rows  int // drawn by the last frame
	drawn time.Time
}

// newScreen returns nil if nothing can be redrawn.
func newScreen(p *command.Program) *screen {
	width, height := command.TerminalSize(p.Stdout)
	switch {
	case width == 0 || p.JSON || os.Getenv("TERM") == "dumb":
		return nil
	case width >= 2*leastLane+3:
		return &screen{w: p.Stdout, style: p.Style(p.Stdout), width: (width - 3) / 2, height: max(height-4, 4)}
	}
	return &screen{
		w: p.Stdout, style: p.Style(p.Stdout), width: max(width-1, 8), height: max((height-7)/2, 2), stacked: true,
	}
}

func (s *screen) hide() { io.WriteString(s.w, "\x1b[?25l") }
func (s *screen) show() { io.WriteString(s.w, "\x1b[?25h") }

// draw writes a frame over the last one.
func (s *screen) draw(lanes []*lane) {
	frame := s.frame(lanes)
	var b strings.Builder
	if s.rows > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.rows)
	}
	for _, line := range frame {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	s.rows, s.drawn = len(frame), time.Now()
	io.WriteString(s.w, b.String())
}

// drawSoon draws a frame if the last one was long enough ago.
func (s *screen) drawSoon(lanes []*lane) {
	if time.Since(s.drawn) >= frameTime {
		s.draw(lanes)
	}
}

// frame returns the lines of all lanes: title, the end of the text, speed. It never shrinks.
func (s *screen) frame(lanes []*lane) (frame []string) {
	texts := make([][]string, len(lanes))
	for i, l := range lanes {
		lines := s.wrap(l.pieces)
		texts[i] = lines[max(0, len(lines)-s.height):]
		s.lines = max(s.lines, len(texts[i]))
	}
	for i, l := range lanes {
		column := append([]string{s.style.Title(s.fit("── " + l.title))}, texts[i]...)
		for len(column) < s.lines+1 {
			column = append(column, s.fit(""))
		}
		column = append(column, s.style.Title(s.fit(l.speed())))
		switch {
		case s.stacked:
			frame = append(frame, column...)
		case i == 0:
			frame = column
		default:
			for r := range frame {
				frame[r] += " │ " + column[r]
			}
		}
	}
	return frame
}

// fit cuts or pads text to the width of a column.
func (s *screen) fit(text string) string {
	n := utf8.RuneCountInString(text)
	if n > s.width {
		return string([]rune(text)[:s.width-1]) + "…"
	}
	return text + strings.Repeat(" ", s.width-n)
}

// wrap breaks text into lines of a column's width, padded with spaces. It colours drafted text.
func (s *screen) wrap(pieces []grove.Piece) []string {
	var lines []string
	var line strings.Builder
	column := 0
	end := func() {
		line.WriteString(strings.Repeat(" ", s.width-column))
		lines = append(lines, line.String())
		line.Reset()
		column = 0
	}
	for _, p := range pieces {
		style := command.Style{On: s.style.On && p.Drafted}
		var run strings.Builder // of the piece, on this line
		flush := func() {
			line.WriteString(style.Drafted(run.String()))
			run.Reset()
		}
		for _, r := range p.Text {
			if r == '\n' {
				flush()
				end()
				continue
			}
			text := string(command.Visible(r))
			if r == '\t' {
				text = strings.Repeat(" ", 4-column%4)
			}
			for _, c := range text {
				columns := uniseg.StringWidth(string(c)) // 2 for a Chinese character
				if column+columns > s.width {
					flush()
					end()
				}
				run.WriteRune(c)
				column += columns
			}
		}
		flush()
	}
	if column > 0 {
		end()
	}
	return lines
}
