package main

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grovellm/grove"
)

// lane is one of two generations that run side by side.
type lane struct {
	title  string
	chunks iter.Seq2[grove.Chunk, error]

	result *grove.Result
	pieces []grove.Piece
	tokens int           // after the first
	clock  time.Duration // that they took
}

// leastLane is the columns that a lane needs to be readable.
const leastLane = 36

// frameTime is the time between two frames.
const frameTime = 40 * time.Millisecond

// race runs lanes side by side on a terminal. They take turns, a round at a time: the one whose clock is behind goes on,
// so that each advances as it would alone, and no time is charged but its own.
func race(p *program, lanes []*lane, width, height int) error {
	var nexts []func() (grove.Chunk, error, bool)
	for _, l := range lanes {
		next, stop := iter.Pull2(l.chunks)
		defer stop()
		nexts = append(nexts, next)
	}
	s := &screen{w: p.stdout, style: p.style(p.stdout), width: (width - 3) / 2, height: max(height-8, 4)}
	s.hide()
	defer s.show()
	shown := time.Now()
	for {
		at := -1
		for i, l := range lanes {
			if l.result == nil && (at < 0 || l.clock < lanes[at].clock) {
				at = i
			}
		}
		if at < 0 {
			s.draw(lanes)
			return nil
		}
		l := lanes[at]
		began := time.Now()
		c, err, ok := nexts[at]()
		took := time.Since(began)
		if err == nil && !ok {
			err = fmt.Errorf("the generation ended without a result")
		}
		if err != nil {
			s.draw(lanes)
			return err
		}
		if l.clock == 0 { // the first token: its time is the prompt's
			took = 1
		} else {
			l.tokens += len(c.Tokens)
		}
		l.clock += took
		l.pieces = append(l.pieces, c.Pieces...)
		l.result = c.Result
		if time.Since(shown) >= frameTime {
			s.draw(lanes)
			shown = time.Now()
		}
	}
}

// screen redraws two columns in place.
type screen struct {
	w             io.Writer
	style         style
	width, height int // of a column; of the text
	rows          int // drawn by the last frame
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
	s.rows = max(s.rows, len(frame))
	io.WriteString(s.w, b.String())
}

// frame is the lines of both columns: title, the end of the text, speed. It never shrinks.
func (s *screen) frame(lanes []*lane) []string {
	var columns [][]string
	rows := s.rows - 2
	for _, l := range lanes {
		lines := s.wrap(l.pieces)
		lines = lines[max(0, len(lines)-s.height):]
		rows = max(rows, len(lines))
		columns = append(columns, lines)
	}
	frame := make([]string, rows+2)
	for i, l := range lanes {
		speed := fmt.Sprintf("%d tokens", l.tokens)
		if l.tokens > 0 {
			speed += fmt.Sprintf(", %.1f tokens/s", float64(l.tokens)/l.clock.Seconds())
		}
		columns[i] = append([]string{s.style.title(s.fit("── " + l.title))}, columns[i]...)
		for len(columns[i]) < rows+1 {
			columns[i] = append(columns[i], s.fit(""))
		}
		columns[i] = append(columns[i], s.fit(speed))
		for r, line := range columns[i] {
			if i > 0 {
				frame[r] += " │ "
			}
			frame[r] += line
		}
	}
	return frame
}

// fit cuts or fills text to the width of a column.
func (s *screen) fit(text string) string {
	n := utf8.RuneCountInString(text)
	if n > s.width {
		return string([]rune(text)[:s.width-1]) + "…"
	}
	return text + strings.Repeat(" ", s.width-n)
}

// wrap breaks text into lines of a column's width, filled with spaces; what was drafted is coloured.
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
		paint := func(text string) string { return text }
		if p.Drafted {
			paint = s.style.drafted
		}
		var run strings.Builder // of the piece, on this line
		flush := func() {
			line.WriteString(paint(run.String()))
			run.Reset()
		}
		for _, r := range p.Text {
			if r == '\n' {
				flush()
				end()
				continue
			}
			text := string(visible(r))
			if r == '\t' {
				text = strings.Repeat(" ", 4-column%4)
			}
			for _, c := range text {
				if column == s.width {
					flush()
					end()
				}
				run.WriteRune(c)
				column++
			}
		}
		flush()
	}
	if column > 0 {
		end()
	}
	return lines
}
