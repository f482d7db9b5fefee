// The presets of grove bench spec that do not measure speed: how well trees predict acceptance.

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
)

// faithful measures how well trees predict acceptance.
func (cmd *benchSpecCmd) faithful(ctx context.Context, p *command.Program, preset *bench.Preset, runs []plannedRun,
	m *grove.Model) error {
	target := inside.Target(m)
	o := bench.FaithfulOptions{Target: target, Title: preset.Help, ModelName: command.OwnName(target.Model, cmd.Model),
		MaxTokens: cmd.MaxTokens}
	var err error
	if o.Runs, err = cmd.methods(runs, target); err != nil {
		return err
	}
	bar := newSpecProgress(p)
	o.Progress = bar.generation
	report, err := bench.Faithful(ctx, o)
	bar.End()
	if err != nil {
		return err
	}
	return printReport(p, report, cmd.Out, report.Markdown, report.Save)
}

// printReport writes a report to the standard output, and to a folder if one is named.
func printReport(p *command.Program, report any, dir string, markdown func(io.Writer) error,
	save func(dir string) ([]string, error)) error {
	if p.JSON {
		if err := p.PrintJSON(report); err != nil {
			return err
		}
	} else if err := markdown(p.Stdout); err != nil {
		return err
	}
	if dir == "" {
		return nil
	}
	files, err := save(dir)
	for _, f := range files {
		fmt.Fprintln(p.Stderr, f)
	}
	return err
}
