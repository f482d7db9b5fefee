package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
)

type draftersCmd struct {
	command.ModelFlags

	Name string `arg:"" optional:"" help:"Explain this drafter and its options."`
}

func (draftersCmd) Help() string {
	return `Lists the drafters that --drafter takes, and says which of them can run with the given model, draft model and
heads. With a name, it explains that drafter: its options with their defaults and ranges, what it needs, and its
paper.

Options follow a colon, and modifiers a plus: --drafter best-first:depth=5+text+freq:size=4096. The default,
auto, stands for the best drafter that the given files allow.

Examples:
    grove drafters
    grove drafters auto
    grove drafters best-first
    grove drafters -m FILE --head HEAD`
}

// drafterInfo is a line of the list.
type drafterInfo struct {
	Name    string `json:"name"`
	Help    string `json:"help"`
	Needs   string `json:"needs,omitempty"`
	Ready   bool   `json:"ready"`
	Default bool   `json:"default,omitempty"`
}

func (cmd *draftersCmd) Run(p *command.Program) error {
	var family registry.Family
	if cmd.Name != "" && cmd.Name != registry.Plain && cmd.Name != registry.Auto {
		families := registry.Families()
		at := slices.IndexFunc(families, func(f registry.Family) bool { return f.Name == cmd.Name })
		if at < 0 {
			return command.Usagef("there is no drafter %q: want one of %s", cmd.Name, strings.Join(drafterNames(), ", "))
		}
		family = families[at]
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	switch {
	case cmd.Name == "":
		return cmd.list(p, m)
	case cmd.Name == registry.Plain:
		return explainPlain(p)
	case cmd.Name == registry.Auto:
		return cmd.explainAuto(p, m)
	}
	return cmd.explain(p, m, &family)
}

// list prints a line for each drafter.
func (cmd *draftersCmd) list(p *command.Program, m *grove.Model) error {
	auto, err := registry.Resolve(registry.Auto, inside.Target(m))
	if err != nil {
		return err
	}
	list := []drafterInfo{
		{Name: registry.Auto, Help: "the best drafter for the open files: " + auto, Ready: true, Default: true},
		{Name: registry.Plain, Help: plainHelp, Ready: true},
	}
	for _, f := range registry.Families() {
		list = append(list, drafterInfo{Name: f.Name, Help: f.Help, Needs: f.Needs, Ready: ready(&f, m) == nil})
	}
	if p.JSON {
		return p.PrintJSON(list)
	}
	fmt.Fprintf(p.Stdout, "Drafters for %s:\n\n", command.ModelName(m, cmd.Model))
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, d := range list {
		state := "ready"
		switch {
		case d.Default:
			state = "default"
		case !d.Ready:
			state = "-"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", d.Name, state, d.Help)
	}
	fmt.Fprint(t, "\nModifiers:\n\n")
	for _, o := range registry.AllModifiers {
		fmt.Fprintf(t, "  +%s\t\t%s\n", o.Name, o.Help)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(p.Stdout,
		"\nA drafter with - needs a draft model or head that is not open: --draft-model FILE, --head FILE.\n",
		"grove drafters NAME explains a drafter. Every drafter gives the same text.\n")
	return nil
}

const plainHelp = "plain decoding: one token per pass"

// explainAuto prints which drafter auto stands for.
func (cmd *draftersCmd) explainAuto(p *command.Program, m *grove.Model) error {
	text, err := registry.Resolve(registry.Auto, inside.Target(m))
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(struct {
			drafterInfo
			Text string `json:"text"`
		}{drafterInfo{Name: registry.Auto, Help: "the best drafter for the open files", Ready: true, Default: true}, text})
	}
	w := command.NewHelpWriter(p.Stdout)
	w.Paragraph(registry.Auto + ": the default drafter")
	w.Paragraph(fmt.Sprintf("For %s it is %s.", command.ModelName(m, cmd.Model), text))
	if inside.Target(m).Auto != "" {
		w.Paragraph("That was chosen for this model. For other models, it is the first of a list that can run.")
		return w.Flush()
	}
	var names []string
	for _, f := range registry.AutoFamilies() {
		names = append(names, f.Name)
	}
	w.Paragraph("It is the first of these that can run: " + strings.Join(names, ", ") + ".")
	return w.Flush()
}

func explainPlain(p *command.Program) error {
	if p.JSON {
		return p.PrintJSON(drafterInfo{Name: registry.Plain, Help: plainHelp, Ready: true})
	}
	w := command.NewHelpWriter(p.Stdout)
	w.Paragraph(registry.Plain + ": " + plainHelp)
	w.Paragraph("Nothing is drafted. It is the baseline of all drafters, which give the same text.")
	return w.Flush()
}

// explain prints everything about a drafter.
func (cmd *draftersCmd) explain(p *command.Program, m *grove.Model, f *registry.Family) error {
	problem := ready(f, m)
	if p.JSON {
		type option struct {
			Key     string `json:"name"`
			Default any    `json:"default"`
			Help    string `json:"help"`
		}
		options := []option{}
		for _, o := range f.Listed() {
			options = append(options, option(o))
		}
		return p.PrintJSON(struct {
			drafterInfo
			About   string   `json:"about"`
			Paper   string   `json:"paper,omitempty"`
			Options []option `json:"options"`

			Modifiers []string `json:"modifiers,omitempty"`
		}{
			drafterInfo{Name: f.Name, Help: f.Help, Needs: f.Needs, Ready: problem == nil},
			strings.Join(strings.Fields(f.About), " "), f.Paper, options, f.Modifiers,
		})
	}
	w := command.NewHelpWriter(p.Stdout)
	w.Paragraph(f.Name + ": " + f.Help)
	w.Text(f.About)
	if f.Paper != "" {
		w.Paragraph("Paper: " + f.Paper + ".")
	}
	if need := neededFlag(f.Needs); need != "" {
		w.Paragraph("It needs " + f.Needs + ": " + need + ".")
	}
	if problem != nil {
		w.Paragraph(fmt.Sprintf("It cannot run with %s: %v.", command.ModelName(m, cmd.Model), problem))
	} else {
		w.Paragraph(fmt.Sprintf("It can run with %s.", command.ModelName(m, cmd.Model)))
	}
	if options := f.Listed(); len(options) > 0 {
		first := options[0]
		s := command.Section{Title: fmt.Sprintf("Options with their defaults, as in -d %s:%s=%v", f.Name,
			first.Key, first.Default)}
		for _, o := range options {
			s.Rows = append(s.Rows, [2]string{fmt.Sprintf("%s=%v", o.Key, o.Default), o.Help})
		}
		w.Section(s)
	}
	if len(f.Modifiers) > 0 {
		s := command.Section{Title: "Modifiers with their options"}
		for _, m := range registry.AllModifiers {
			if !slices.Contains(f.Modifiers, m.Name) {
				continue
			}
			text := "+" + m.Name
			for i, o := range m.Listed() {
				text += fmt.Sprintf("%c%s=", ":,"[min(i, 1)], o.Key)
			}
			s.Rows = append(s.Rows, [2]string{text, m.Help})
		}
		w.Section(s)
	}
	return w.Flush()
}

// neededFlag returns the flag that gives a drafter what it needs.
func neededFlag(needs string) string {
	switch {
	case strings.HasSuffix(needs, "draft model"):
		return "--draft-model FILE"
	case strings.HasSuffix(needs, "head"):
		return "--head FILE"
	}
	return ""
}

// ready returns the reason why a drafter cannot run with a model, or nil if it can.
func ready(f *registry.Family, m *grove.Model) error {
	text := f.Name
	if f.Name == "merge" {
		text += ":lookup+lookup" // its parts may be missing
	}
	_, err := registry.New(text, inside.Target(m))
	if inner := errors.Unwrap(err); inner != nil {
		return inner // without the drafter's name
	}
	return err
}

// comparedDrafters returns the drafters to compare if none is named: one of each family that the
// target can run, and auto.
func comparedDrafters(target registry.Target) (names []string) {
	for _, f := range registry.Families() {
		if _, err := registry.New(f.Name, target); err == nil && !f.Parts {
			names = append(names, f.Name)
		}
	}
	return append(names, registry.Auto)
}

// drafterNames lists what --drafter takes.
func drafterNames() []string {
	names := []string{registry.Auto, registry.Plain}
	for _, f := range registry.Families() {
		names = append(names, f.Name)
	}
	return names
}
