package command

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style colours text for a person; without colours it leaves text as it is.
type Style struct{ On bool }

// Style returns the style of text written to w: coloured according to --color, by default on a
// terminal, unless NO_COLOR (no-color.org) is set.
func (p *Program) Style(w io.Writer) Style {
	switch p.Color {
	case "always":
		return Style{true}
	case "never":
		return Style{}
	}
	return Style{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s Style) paint(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Drafted marks text that was drafted and accepted.
func (s Style) Drafted(text string) string { return s.paint("32", text) } // green

// Rejected marks text that was drafted and rejected, and text that matters less.
func (s Style) Rejected(text string) string { return s.paint("2", text) } // faint

// Title marks a heading.
func (s Style) Title(text string) string { return s.paint("1", text) } // bold

// TerminalSize returns the size of the terminal w, or 0, 0 if w is not one.
func TerminalSize(w io.Writer) (width, height int) {
	if f, ok := fileOf(w); ok && IsTerminal(f) {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return 80, 24
	}
	return 0, 0
}

// Visible keeps a model's text from controlling the terminal: it replaces control characters, other
// than line ends and tabs, by a replacement character.
func Visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return '\uFFFD'
	}
	return r
}
