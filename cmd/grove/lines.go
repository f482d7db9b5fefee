package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"

	"github.com/grovellm/grove/internal/command"
)

// lineReader reads lines from a person or a program.
type lineReader interface {
	read(ctx context.Context) (string, error) // io.EOF when there are no more
	interactive() bool                        // a person reads and may interrupt
}

// openLines returns the reader that suits standard input: with editing and history on a terminal.
// There the first Ctrl-C clears the line and, unless leaves is empty, prints what leaves.
func openLines(p *command.Program, prompt, leaves string) lineReader {
	if in, ok := p.Stdin.(*os.File); ok && command.IsTerminal(in) && command.IsTerminal(p.Stdout) {
		k := &keys{in: bufio.NewReader(in), Writer: p.Stdout}
		t := term.NewTerminal(k, prompt)
		if leaves != "" {
			k.hint = func() { fmt.Fprintln(t, leaves) }
		}
		return &editor{fd: int(in.Fd()), t: t, keys: k}
	}
	return newPlainLines(p.Stdin)
}

// editor edits lines on a terminal. The terminal is in raw mode only while a line is read, so that
// Ctrl-C is a signal while the model speaks.
type editor struct {
	fd   int
	t    *term.Terminal
	keys *keys
}

func (e *editor) interactive() bool { return true }

func (e *editor) read(ctx context.Context) (text string, err error) {
	old, err := term.MakeRaw(e.fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(e.fd, old)
	defer func() {
		if err != nil {
			io.WriteString(e.keys, "\r\n") // further output must not follow the prompt
		}
	}()
	_ = e.t.SetSize(command.TerminalSize(e.keys.Writer)) // not the input's size: Windows has none for that
	e.t.SetBracketedPasteMode(true)
	defer e.t.SetBracketedPasteMode(false)
	came := make(chan readLine, 1)
	go func() { came <- e.line() }()
	select {
	case line := <-came:
		return line.text, line.err
	case <-ctx.Done(): // the program ends, and with it the goroutine that waits for a key
		return "", ctx.Err()
	}
}

// line reads up to Enter.
func (e *editor) line() readLine {
	var text strings.Builder
	for {
		line, err := e.t.ReadLine() // Ctrl-C and Ctrl-D are io.EOF
		if e.keys.cleared {
			text.Reset() // and the lines pasted before
			e.keys.cleared = false
		}
		text.WriteString(line)
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return readLine{"", err}
		}
		if !e.keys.pasting {
			return readLine{text.String(), nil}
		}
		text.WriteByte('\n') // a pasted text of several lines is one turn, along with any typed text around it
	}
}

// keys are a person's keys, typed or pasted, read no further than the end of a line: so pasting refers to the
// last line. The terminal's own signal, term.ErrPasteIndicator, is missing for a line that was partly typed.
type keys struct {
	io.Writer
	in      *bufio.Reader
	last    string // the last characters read, at most as many as a paste's mark has
	pasting bool   // more pasted text follows
	cleared bool   // Ctrl-C cleared the text typed and pasted so far
	hint    func() // shows how to leave, at the first Ctrl-C; if nil, Ctrl-C leaves
}

// The control keys that clear a terminal's line.
const (
	ctrlC = 3
	ctrlE = 5  // go to the end of the line
	ctrlU = 21 // delete everything before the cursor
)

func (k *keys) Read(b []byte) (n int, err error) {
	for n < len(b) && (n == 0 || k.in.Buffered() > 0 && b[n-1] != '\r' && b[n-1] != '\n') {
		if b[n], err = k.in.ReadByte(); err != nil {
			return n, err
		}
		if b[n] == ctrlC && k.hint != nil && !strings.HasSuffix(k.last, string(rune(ctrlC))) {
			k.last, k.cleared = string(rune(ctrlC)), true
			k.hint()
			return copy(b[n:], []byte{ctrlE, ctrlU}) + n, nil
		}
		k.last += string(b[n : n+1])
		k.last = k.last[max(0, len(k.last)-len("\x1b[200~")):]
		k.pasting = k.last == "\x1b[200~" || k.pasting && k.last != "\x1b[201~"
		if !strings.HasSuffix(k.last, "\r\n") { // these two are one line end
			n++
		}
	}
	return n, nil
}

// plainLines reads lines from any input. It reads in another goroutine, so that a read can be interrupted.
type plainLines struct{ lines chan readLine }

type readLine struct {
	text string
	err  error
}

func newPlainLines(r io.Reader) *plainLines {
	l := &plainLines{lines: make(chan readLine)}
	go func() {
		s := bufio.NewScanner(r)
		s.Buffer(nil, command.MaxPrompt)
		for s.Scan() {
			l.lines <- readLine{s.Text(), nil}
		}
		err := cmp.Or(s.Err(), io.EOF)
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("standard input: a line of more than %s: no model takes that much", command.Size(command.MaxPrompt))
		}
		l.lines <- readLine{"", err}
	}()
	return l
}

func (l *plainLines) interactive() bool { return false }

func (l *plainLines) read(ctx context.Context) (string, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	select {
	case line := <-l.lines:
		return line.text, line.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
