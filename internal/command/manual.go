// The pages of all commands as Markdown (docs/cli.md) and as a manual page (docs/grove.1).

package command

import (
	"fmt"
	"os"
	"path/filepath"
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

// PagesOf are the pages of a node and of all commands below it.
func PagesOf(app *kong.Application, n *kong.Node) []page {
	list := []page{pageOf(app, n)}
	for _, c := range n.Children {
		if !c.Hidden {
			list = append(list, PagesOf(app, c)...)
		}
	}
	return list
}

// markdownPage is the reference of the command. Flags that several commands have alike come once, after all commands.
func markdownPage(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The command %s\n\n`go generate ./cmd/%[1]s` writes this page from the help texts.\n", app.Name)
	pages := PagesOf(app, app.Node)
	shared, groups := findShared(pages)
	for i, p := range pages {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n    %s\n", p.Name, markdownText(p.summary), p.usage)
		for _, block := range blocksOf(p.detail) {
			b.WriteByte('\n')
			for _, line := range block.lines {
				if !block.literal {
					line = markdownText(line)
				}
				b.WriteString(line + "\n")
			}
		}
		for _, s := range p.sections {
			if s.common && i > 0 {
				continue // once, with the program itself
			}
			fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", s.Title)
			listed := map[*sharedFlags]bool{}
			for _, row := range s.Rows {
				group := shared[sharedRow{s.Title, row}]
				switch {
				case group == nil:
					b.WriteString(markdownRow(row))
				case !listed[group]:
					listed[group] = true
					fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", group.name, strings.ToLower(strings.ReplaceAll(group.name, " ", "-")),
						markdownCell(group.list()))
				}
			}
		}
	}
	if len(groups) > 0 {
		b.WriteString("\n## Flags of several commands\n")
	}
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n\n| Flags | |\n|---|---|\n", group.name, strings.Join(group.commands, ", "))
		for _, row := range group.rows {
			b.WriteString(markdownRow(row))
		}
	}
	return b.String()
}

func markdownRow(row [2]string) string {
	return fmt.Sprintf("| `%s` | %s |\n", markdownCell(strings.TrimSpace(row[0])), markdownCell(markdownText(row[1])))
}

// sharedRow is a flag below a title, as commands have it.
type sharedRow struct {
	title string
	row   [2]string
}

// sharedFlags are flags of one title that the same commands have.
type sharedFlags struct {
	name     string
	commands []string
	rows     [][2]string
}

// list names them.
func (s *sharedFlags) list() string {
	var names []string
	for _, row := range s.rows {
		_, long, _ := strings.Cut(row[0], "--")
		name, _, _ := strings.Cut(long, "=")
		names = append(names, "`--"+name+"`")
	}
	return strings.Join(names, ", ")
}

// findShared are the flags that three commands or more have alike, where these are three or more, and their groups in
// order.
func findShared(pages []page) (shared map[sharedRow]*sharedFlags, list []*sharedFlags) {
	commands := map[sharedRow][]string{}
	var order []sharedRow
	for _, p := range pages {
		for _, s := range p.sections {
			for _, row := range s.Rows {
				key := sharedRow{s.Title, row}
				if s.common || !strings.Contains(row[0], "--") {
					continue
				}
				if commands[key] == nil {
					order = append(order, key)
				}
				commands[key] = append(commands[key], p.Name)
			}
		}
	}
	groups := map[string]*sharedFlags{}
	shared = map[sharedRow]*sharedFlags{}
	for _, key := range order {
		if len(commands[key]) < 3 {
			continue
		}
		id := key.title + "\n" + strings.Join(commands[key], "\n")
		if groups[id] == nil {
			groups[id] = &sharedFlags{commands: commands[key]}
		}
		groups[id].rows = append(groups[id].rows, key.row)
		shared[key] = groups[id]
	}
	numbers := map[string]int{}
	for _, key := range order {
		group := shared[key]
		switch {
		case group == nil || group.name != "":
		case len(group.rows) < 3:
			delete(shared, key)
		default:
			numbers[key.title]++
			group.name = fmt.Sprintf("%s %d", key.title, numbers[key.title])
			list = append(list, group)
		}
	}
	return shared, list
}

// markdownText escapes what Markdown would take for emphasis, code or HTML.
func markdownText(s string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`").Replace(s)
}

// markdownCell escapes what ends a cell of a table.
func markdownCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// manPage is the manual page, for man -l.
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
