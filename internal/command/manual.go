// The list of all commands as Markdown (docs/cli.md), and their pages as a manual page (docs/grove.1).

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// writeManuals writes both into a folder.
func (p *Program) writeManuals(dir string, app *kong.Application) error {
	for name, text := range map[string]string{p.Page: markdownPage(app), p.Name + ".1": manPage(app)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// PagesOf returns the pages of a node and of all commands under it.
func PagesOf(app *kong.Application, n *kong.Node) []page {
	list := []page{pageOf(app, n)}
	for _, c := range n.Children {
		if !c.Hidden {
			list = append(list, PagesOf(app, c)...)
		}
	}
	return list
}

// markdownPage lists the commands and environment variables. Flags are in the commands' help and the manual page.
func markdownPage(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The command %s\n\n`go generate ./cmd/%[1]s` writes this page from the help texts. ", app.Name)
	fmt.Fprintf(&b, "`%s COMMAND --help` lists all flags of a command, `man ./docs/%[1]s.1` those of all commands.\n", app.Name)
	first := pageOf(app, nil)
	fmt.Fprintf(&b, "\n%s\n", markdownText(first.summary))
	for _, block := range blocksOf(first.detail) {
		b.WriteByte('\n')
		for _, line := range block.lines {
			if !block.literal {
				line = markdownText(line)
			}
			b.WriteString(line + "\n")
		}
	}
	for _, s := range first.sections {
		if s.common {
			continue
		}
		fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", s.Title)
		for _, row := range s.Rows {
			for _, p := range PagesOf(app, Child(app.Node, row[0])) {
				usage := strings.TrimSuffix(strings.TrimPrefix(p.usage, app.Name+" "), " [flags]")
				fmt.Fprintf(&b, "| `%s` | %s |\n", markdownCell(usage), markdownCell(markdownText(p.summary)))
			}
		}
	}
	fmt.Fprintf(&b, "\nEnvironment variables, in place of flags: `GROVE_CPU` (`--cpu`)")
	for _, f := range flagsOfEnvironment(app.Node) {
		fmt.Fprintf(&b, ", `%s` (`--%s`)", f.Envs[0], f.Name)
	}
	b.WriteString(". [Others](pull.md#the-cache) configure the hub.\n")
	return b.String()
}

// flagsOfEnvironment lists the first flag for each environment variable, under a node.
func flagsOfEnvironment(n *kong.Node) (list []*kong.Flag) {
	all := n.Flags
	for _, c := range n.Children {
		all = slices.Concat(all, flagsOfEnvironment(c))
	}
	for _, f := range all {
		if len(f.Envs) > 0 && !slices.ContainsFunc(list, func(g *kong.Flag) bool { return g.Envs[0] == f.Envs[0] }) {
			list = append(list, f)
		}
	}
	return list
}

// markdownText escapes characters that Markdown would read as emphasis, code or HTML.
func markdownText(s string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`").Replace(s)
}

// markdownCell escapes the characters that end a cell of a table.
func markdownCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// manPage returns the manual page, for man -l.
func manPage(app *kong.Application) string {
	var b strings.Builder
	pages := PagesOf(app, app.Node)
	first := pages[0]
	fmt.Fprintf(&b, ".TH %s 1 \"\" grove \"User Commands\"\n.SH NAME\n", manText(strings.ToUpper(app.Name)))
	fmt.Fprintf(&b, "%s \\- %s\n.SH SYNOPSIS\n%s\n.SH DESCRIPTION\n",
		manText(app.Name), manText(strings.ToLower(first.summary[:1])+strings.TrimSuffix(first.summary[1:], ".")),
		manText(first.usage))
	manDetail(&b, first.detail)
	b.WriteString(".SH COMMON FLAGS\n")
	for _, s := range first.sections {
		if s.common {
			manRows(&b, s)
		}
	}
	b.WriteString(".SH COMMANDS\n")
	for _, p := range pages[1:] {
		fmt.Fprintf(&b, ".SS %s\n%s\n.PP\n%s\n", manText(p.Name), manText(p.usage), manText(p.summary))
		manDetail(&b, p.detail)
		for _, s := range p.sections {
			if !s.common {
				fmt.Fprintf(&b, ".PP\n.B %s\n", manText(s.Title))
				manRows(&b, s)
			}
		}
	}
	return b.String()
}

func manDetail(b *strings.Builder, text string) {
	for _, block := range blocksOf(text) {
		if !block.literal {
			b.WriteString(".PP\n")
			for _, line := range block.lines {
				b.WriteString(manText(line) + "\n")
			}
			continue
		}
		b.WriteString(".PP\n.nf\n")
		for _, line := range block.lines {
			b.WriteString(manText(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
}

func manRows(b *strings.Builder, s Section) {
	for _, row := range s.Rows {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", manText(strings.TrimSpace(row[0])), manText(row[1]))
	}
}

// manText escapes backslashes and dashes, and a dot or quote that would begin a request.
func manText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
