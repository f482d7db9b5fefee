// The presets of grove bench spec that measure something else than speed: how far trees are to be believed.

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

// otherReport is a report that is not bench.Spec's.
type otherReport interface {
	Markdown(io.Writer) error
	Save(dir string) ([]string, error)
}

// other runs what a preset measures besides speculation.
func (cmd *benchSpecCmd) other(ctx context.Context, p *command.Program, preset *bench.Preset, runs []plannedRun,
	m *grove.Model) error {
	target := inside.Target(m)
	name := command.OwnName(target.Model, cmd.Model)
	var report otherReport
	var err error
	switch preset.Measure {
	case bench.MeasureFaithful:
		o := bench.FaithfulOptions{Target: target, Title: preset.Help, ModelName: name, MaxTokens: cmd.MaxTokens}
		if o.Runs, err = cmd.methods(runs, target); err != nil {
			return err
		}
		bar := newSpecProgress(p)
		o.Progress = bar.generation
		report, err = bench.Faithful(ctx, o)
		bar.End()
	default:
		return fmt.Errorf("preset %s: there is no measure %q", preset.Name, preset.Measure)
	}
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.PrintJSON(report)
	} else {
		err = report.Markdown(p.Stdout)
	}
	if err != nil || cmd.Out == "" {
		return err
	}
	files, err := report.Save(cmd.Out)
	for _, f := range files {
		fmt.Fprintln(p.Stderr, f)
	}
	return err
}
