package main

import (
	"fmt"
	"os"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
)

type adaptCmd struct {
	command.ModelFlags

	Drafter string `short:"d" help:"The drafter (${default})." default:"auto" placeholder:"NAME"`
	Reset   bool   `help:"Delete what was learned."`
	Export  string `help:"Write the adapted head to this GGUF file, for --head." placeholder:"FILE"`
	Force   bool   `short:"f" help:"Replace an existing file."`
}

func (adaptCmd) Help() string {
	return `Shows or deletes what a draft head learned during grove run or grove chat with --adapt DIR, or exports the
head. Each file in the folder belongs to one head.

Examples:
    grove chat --adapt learned
    grove adapt --adapt learned
    grove adapt --adapt learned --export better.gguf
    grove adapt --adapt learned --reset`
}

func (cmd *adaptCmd) Run(p *command.Program) error {
	if cmd.Adapt == "" {
		return command.Usagef("want --adapt DIR, the folder with what was learned")
	}
	if info, err := os.Stat(cmd.Adapt); !cmd.Reset && (err != nil || !info.IsDir()) {
		return command.Usagef("--adapt %s: there is no such folder, so nothing was learned there", cmd.Adapt)
	}
	if cmd.Export != "" {
		if err := command.NewFile(cmd.Export, cmd.Force); err != nil {
			return err
		}
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	a, err := inside.Adapter(m, cmd.Drafter)
	if err != nil {
		return err
	}
	if cmd.Export != "" {
		if err := m.ExportHead(cmd.Drafter, cmd.Export); err != nil {
			return err
		}
		fmt.Fprintln(p.Stderr, cmd.Export)
	}
	if cmd.Reset {
		if err := a.Reset(); err != nil {
			return err
		}
	}
	s := a.Stats()
	if p.JSON {
		return p.PrintJSON(s)
	}
	fmt.Fprintf(p.Stdout, "%s: learned from %s and %s\n", cmd.Drafter, several(s.Queries, "generation"),
		several(s.Rejected, "rejected draft"))
	fmt.Fprintf(p.Stdout, "updates: %d, of which %d came into use as judged better; learning was given up %d times, undone %d times\n",
		s.Updates[adapt.Head]+s.Updates[adapt.Full], s.Adopted, s.Returned, s.Rollbacks)
	fmt.Fprintf(p.Stdout, "cost: %.2f s of %.1f s of decoding, with %.2f s allowed; %.1f s of processor time\n",
		s.Lost, s.Decoding, s.Allowed, s.Seconds)
	fmt.Fprintf(p.Stdout, "expected accepted length against the original head: at least %+.1f %%\n", 100*s.Gain)
	return nil
}
