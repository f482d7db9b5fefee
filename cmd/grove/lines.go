package main

import (
	"bufio"
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

// lineReader reads a person's lines, or a program's.
type lineReader interface {
	read(ctx context.Context) (string, error) // io.EOF when there are no more
	interactive() bool                        // a person reads and may interrupt
}

// openLines returns the reader that suits standard input: with editing and history on a terminal. There the first
// Ctrl-C clears the line and says what leaves, if that is not empty.
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

// editor edits lines on a terminal, which is in raw mode only meanwhile, so that Ctrl-C is a signal while
// the model speaks.
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
			io.WriteString(e.keys, "\r\n") // what follows does not stand behind the prompt
		}
	}()
	_ = e.t.SetSize(command.TerminalSize(e.keys.Writer)) // not of the input: Windows knows no size of that
	e.t.SetBracketedPasteMode(true)
	defer e.t.SetBracketedPasteMode(false)
	came := make(chan readLine, 1)
	go func() { came <- e.line() }()
	select {
	case line := <-came:
		return line.text, line.err
	case <-ctx.Done(): // the program ends, and with it the one that waits for a key
		return "", ctx.Err()
	}
}

// line reads what Enter ends.
func (e *editor) line() readLine {
	var text strings.Builder
	for {
		line, err := e.t.ReadLine() // Ctrl-C and Ctrl-D are io.EOF
		if e.keys.cleared {
			text.Reset() // of the lines that were pasted before
			e.keys.cleared = false
		}
		text.WriteString(line)
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return readLine{"", err}
		}
		if !e.keys.pasting {
			return readLine{text.String(), nil}
		}
		text.WriteByte('\n') // a pasted text of several lines is one turn, with what is typed around it
	}
}

// keys are what a person types and pastes, read up to the end of a line at most: so pasting is about the last line.
// The terminal's own word, term.ErrPasteIndicator, is silent on a line that was typed in part.
type keys struct {
	io.Writer
	in      *bufio.Reader
	last    string // of what was read, as long as the mark of a paste
	pasting bool   // more of a pasted text follows
	cleared bool   // by Ctrl-C, what was typed and pasted so far
	hint    func() // says what leaves, at the first Ctrl-C; nil: that leaves
}

// The keys of a terminal's line that clear it.
const (
	ctrlC = 3
	ctrlE = 5  // go to its end
	ctrlU = 21 // delete all before
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
		if !strings.HasSuffix(k.last, "\r\n") { // one end of a line
			n++
		}
	}
	return n, nil
}

// plainLines reads lines from anything. Reading happens beside, so that it can be interrupted.
type plainLines struct{ lines chan readLine }

type readLine struct {
	text string
	err  error
}

func newPlainLines(r io.Reader) *plainLines {
	l := &plainLines{lines: make(chan readLine)}
	go func() {
		b := bufio.NewReader(io.LimitReader(r, command.MaxPrompt))
		for {
			text, err := b.ReadString('\n')
			if text != "" {
				l.lines <- readLine{strings.TrimRight(text, "\r\n"), nil}
			}
			if err != nil {
				l.lines <- readLine{"", err}
				return
			}
		}
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
