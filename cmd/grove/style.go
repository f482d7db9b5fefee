package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// style colours text for a person; without colours it leaves text as it is.
type style struct{ on bool }

// style is that of what is written to w: by --color, and by itself on a terminal, unless NO_COLOR (no-color.org) is set.
func (p *program) style(w io.Writer) style {
	switch p.Color {
	case "always":
		return style{true}
	case "never":
		return style{}
	}
	return style{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// drafted marks text that was drafted and accepted.
func (s style) drafted(text string) string { return s.paint("32", text) } // green

// rejected marks what was drafted in vain, and what matters less.
func (s style) rejected(text string) string { return s.paint("2", text) } // faint

// title marks a heading.
func (s style) title(text string) string { return s.paint("1", text) } // bold

// terminalSize is that of the terminal w; 0, 0 where w is none.
func terminalSize(w io.Writer) (width, height int) {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return 80, 24
	}
	return 0, 0
}

// visible keeps a model's text from steering the terminal: control characters other than line ends and tabs
// become a replacement character.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return '\uFFFD'
	}
	return r
}
