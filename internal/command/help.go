// Help texts: pages, made from what kong knows of a command, and their text for a terminal.
// manual.go lists all commands as Markdown, and writes all pages as a manual page.

package command

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as run or bench cost."`
	Man     bool     `help:"Print the manual page of all commands, for man -l."`
	Write   string   `hidden:"" help:"Write the pages of all commands into this folder."`
}

func (HelpCmd) Help() string {
	return `Explains ${name}, or one command; ${name} COMMAND --help does the same.

Examples:
    ${name} help
    ${name} help bench
    ${name} help --man | man -l -`
}

func (cmd *HelpCmd) Run(p *Program, k *kong.Kong) error {
	switch {
	case cmd.Write != "":
		return p.writeManuals(cmd.Write, k.Model)
	case cmd.Man:
		_, err := io.WriteString(p.Stdout, manPage(k.Model))
		return err
	}
	node := k.Model.Node
	for _, name := range cmd.Command {
		parent := node
		node = Child(parent, name)
		if node == nil && len(childNames(parent)) == 0 {
			return Usagef("%s has no commands of its own: leave %q out", parent.FullPath(), name)
		}
		if node == nil {
			return Usagef("there is no command %q: want one of %s",
				strings.Join(cmd.Command, " "), strings.Join(childNames(parent), ", "))
		}
	}
	return printHelp(p.Stdout, pageOf(k.Model, node))
}

// Child returns the command with that name under a node, or nil if there is none.
func Child(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func childNames(n *kong.Node) (names []string) {
	for _, c := range n.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// page is the help of a command, or of the program itself.
type page struct {
	Name    string // such as grove bench cost
	usage   string
	summary string // one sentence
	detail  string // paragraphs; lines that begin with four spaces are literal

	sections []Section
}

// Section lists arguments or flags: each row has the text to type and its meaning.
type Section struct {
	Title  string
	Rows   [][2]string
	common bool // flags of all commands
}

// onCommands ends the help of each program.
const onCommands = `${name} COMMAND --help explains a command. The exit status is 0 for success, 1 for a failure or a
mismatch, 2 for wrong usage and 130 for an interruption.`

// pageOf returns the page of a command, or of the program itself if n is nil. Commands that several
// programs have write ${name} for the program.
func pageOf(app *kong.Application, n *kong.Node) page {
	if n == nil {
		n = app.Node
	}
	p := page{Name: n.FullPath(), usage: app.Name + " " + n.Summary(), summary: n.Help, detail: n.Detail}
	if n == app.Node {
		p.Name, p.usage = app.Name, app.Name+" <command> [flags]"
		p.summary, p.detail, _ = strings.Cut(n.Help, "\n\n")
		p.detail += "\n\n" + onCommands
	}
	p.detail = strings.ReplaceAll(p.detail, "${name}", app.Name)
	add := func(title string, row [2]string) {
		for i := range p.sections {
			if p.sections[i].Title == title {
				p.sections[i].Rows = append(p.sections[i].Rows, row)
				return
			}
		}
		p.sections = append(p.sections, Section{Title: title, Rows: [][2]string{row}})
	}
	group := func(g *kong.Group, without string) string {
		if g == nil {
			return without
		}
		return g.Title
	}
	for _, c := range n.Children {
		if !c.Hidden {
			add(group(c.Group, "Commands"), [2]string{c.Name, c.Help})
		}
	}
	for _, arg := range n.Positional {
		add("Arguments", [2]string{arg.Summary(), arg.Help})
	}
	if n != app.Node {
		for _, f := range n.Flags {
			if !f.Hidden {
				add(group(f.Group, "Flags"), [2]string{flagText(f), kong.DefaultHelpValueFormatter(f.Value)})
			}
		}
	}
	common := Section{Title: "Common flags", common: true}
	for _, f := range app.Flags {
		common.Rows = append(common.Rows, [2]string{flagText(f), kong.DefaultHelpValueFormatter(f.Value)})
	}
	p.sections = append(p.sections, common)
	return p
}

// flagText returns a flag as it is typed.
func flagText(f *kong.Flag) string {
	text := "    "
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", "
	}
	switch {
	case f.IsBool() && f.Tag.Negatable != "":
		return text + "--[no-]" + f.Name
	case f.IsBool():
		return text + "--" + f.Name
	}
	return text + "--" + f.Name + "=" + f.FormatPlaceHolder()
}

// printHelp writes a page for people.
func printHelp(to io.Writer, p page) error {
	w := NewHelpWriter(to)
	w.Paragraph("Usage: " + p.usage)
	w.Paragraph(p.summary)
	w.Text(p.detail)
	for _, s := range p.sections {
		w.Section(s)
	}
	return w.Flush()
}

// helpWriter wraps text to the width of a terminal. flush returns the first error.
type helpWriter struct {
	w     *bufio.Writer
	width int
	begun bool // something was written, so an empty line must precede the next part
}

// widest is the maximum width of help, in columns.
const widest = 100

func NewHelpWriter(w io.Writer) *helpWriter {
	width, _ := TerminalSize(w)
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	width = cmp.Or(width, 80)
	return &helpWriter{w: bufio.NewWriter(w), width: max(min(width, widest), 40)}
}

func (w *helpWriter) Flush() error { return w.w.Flush() }

// part begins a new part, after an empty line.
func (w *helpWriter) part() {
	if w.begun {
		fmt.Fprintln(w.w)
	}
	w.begun = true
}

func (w *helpWriter) Paragraph(text string) {
	if text == "" {
		return
	}
	w.part()
	for _, line := range wrapWords(text, w.width) {
		fmt.Fprintln(w.w, line)
	}
}

// Text writes paragraphs, and leaves blocks of lines that begin with four spaces as they are.
func (w *helpWriter) Text(text string) {
	for _, b := range blocksOf(text) {
		if !b.literal {
			w.Paragraph(strings.Join(b.lines, " "))
			continue
		}
		if !b.joined {
			w.part()
		}
		for _, line := range b.lines {
			fmt.Fprintln(w.w, "  "+strings.TrimPrefix(line, "    "))
		}
	}
}

// block is a paragraph, or literal lines.
type block struct {
	lines   []string
	literal bool
	joined  bool // no empty line separates it from the block before
}

// blocksOf splits a text at empty lines, and where literal lines begin or end.
func blocksOf(text string) (list []block) {
	empty := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" {
			empty = true
			continue
		}
		literal := strings.HasPrefix(line, "    ")
		if n := len(list); !empty && list[n-1].literal == literal {
			list[n-1].lines = append(list[n-1].lines, line)
		} else {
			list = append(list, block{[]string{line}, literal, !empty})
		}
		empty = false
	}
	return list
}

// Section writes rows in two columns. Text that is too long for the first column gets a line to itself.
func (w *helpWriter) Section(s Section) {
	left := 0
	for _, row := range s.Rows {
		if n := utf8.RuneCountInString(row[0]); n <= min(30, w.width*2/5) {
			left = max(left, n)
		}
	}
	w.part()
	fmt.Fprintln(w.w, s.Title+":")
	for _, row := range s.Rows {
		lines := wrapWords(row[1], w.width-left-4)
		head := row[0]
		if utf8.RuneCountInString(head) > left {
			fmt.Fprintln(w.w, "  "+head)
			head = ""
		}
		for _, line := range lines {
			fmt.Fprintln(w.w, strings.TrimRight(fmt.Sprintf("  %-*s  %s", left, head, line), " "))
			head = ""
		}
	}
}

// wrapWords breaks text into lines of at most width columns, except for words longer than that.
func wrapWords(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
