// The models of grove serve.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/hub/catalog"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

// sources returns the models that the flags name.
func (cmd *serveCmd) sources(p *command.Program, log *slog.Logger) ([]serve.Source, error) {
	base := grove.Options{Parallel: cmd.Parallel, Queue: cmd.Queue}
	var err error
	if base.CacheMemory, err = parseSize(cmd.CacheMemory); err != nil {
		return nil, command.Usagef("--cache-memory %q: %v", cmd.CacheMemory, err)
	}
	base.CacheDir = cmd.CacheDir
	if base.CacheDirSize, err = parseSize(cmd.CacheDirSize); err != nil {
		return nil, command.Usagef("--cache-dir-size %q: %v", cmd.CacheDirSize, err)
	}
	if base.ChatTemplate, err = command.ReadFlag("--template", cmd.Template); err != nil {
		return nil, err
	}
	list, err := cmd.find(log)
	if err != nil {
		return nil, err
	}
	cmd.base = base
	var sources []serve.Source
	for _, m := range list {
		s, err := cmd.source(p, m, len(list) == 1)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// source returns a model as the server loads it; alone reports whether it is the only one.
func (cmd *serveCmd) source(p *command.Program, m catalog.Model, alone bool) (serve.Source, error) {
	bytes, err := m.Bytes()
	if m.Path == "" {
		bytes, err = embeddedBytes(), nil
	}
	if err != nil {
		return serve.Source{}, err
	}
	bytes += cmp.Or(cmd.base.CacheMemory, engine.DefaultPrefixMemory)
	load := func() (*serve.Model, error) {
		if alone {
			return cmd.load(p, m, cmd.OpenFlags, cmd.base)
		}
		base := cmd.base
		base.ChatTemplate = ""                     // a flag's template is for the first model
		base.Progress = func(done, total int64) {} // the log says what is loaded
		if base.CacheDir != "" {
			base.CacheDir = filepath.Join(base.CacheDir, m.Name)
		}
		opened, err := cmd.load(p, m, cmd.foldersOf(m.Name), base)
		if err != nil {
			err = errors.New(command.InFlags(err)) // for the log
		}
		return opened, err
	}
	return serve.Source{Name: m.Name, Bytes: bytes, Load: load}, nil
}

// pull fetches a model that a client names, for the server to serve. Ollama's clients include the
// hub's host in a model's name.
func (cmd *serveCmd) pull(p *command.Program, log *slog.Logger) serve.Puller {
	return func(ctx context.Context, text string, progress func(stage string, done, total int64)) (s serve.Source,
		err error) {
		shown := strings.TrimSuffix(text, ":latest") // as clients will call it
		text = shown
		for _, host := range []string{"hf.co/", "huggingface.co/"} {
			text = strings.TrimPrefix(text, host)
		}
		name, c, err := parseHubModel(text)
		if err != nil {
			return s, err
		}
		c.Progress, c.Note = progress, func(note string) { log.Warn(note) }
		_, _, path, err := fetchModel(ctx, c, name)
		if err != nil {
			return s, err
		}
		found, notes, err := catalog.Find(path)
		if err != nil {
			return s, err
		}
		for _, note := range notes {
			log.Warn(note)
		}
		found[0].Name = shown
		return cmd.source(p, found[0], false)
	}
}

// find lists the models that -m names, with what drafts for each.
func (cmd *serveCmd) find(log *slog.Logger) (list []catalog.Model, err error) {
	cmd.Model = slices.DeleteFunc(cmd.Model, func(path string) bool { return path == "" }) // from an empty variable
	for _, path := range cmd.Model {
		found, notes, err := catalog.Find(path)
		if err != nil {
			return nil, err
		}
		for _, note := range notes {
			log.Warn(note)
		}
		list = append(list, found...)
	}
	if len(cmd.Model) == 0 {
		list = []catalog.Model{{Name: "grove"}}
	}
	one := &list[0]
	if len(list) == 1 {
		one.Name = cmp.Or(cmd.Alias, one.Name)
		if cmd.DraftModel != "" || len(cmd.Head) > 0 {
			one.Draft, one.Heads = cmd.DraftModel, cmd.Head
		}
		return list, nil
	}
	for flag, given := range map[string]bool{"--alias": cmd.Alias != "", "--template": cmd.Template != "",
		"--draft-model": cmd.DraftModel != "", "--head": len(cmd.Head) > 0} {
		if given {
			return nil, command.Usagef("%s is for one model, and there are %d: name the draft models and heads of each in grove.json in their folder",
				flag, len(list))
		}
	}
	paths := map[string]string{}
	for _, m := range list {
		if other, twice := paths[m.Name]; twice {
			return nil, fmt.Errorf("%s and %s have the same name for clients, %q: rename one, or serve it elsewhere",
				other, m.Path, m.Name)
		}
		paths[m.Name] = m.Path
	}
	return list, nil
}

// embeddedBytes returns the memory that the models in the program take.
func embeddedBytes() int64 {
	n := len(models.Target()) + len(models.Draft())
	for _, head := range models.Heads() {
		n += len(head)
	}
	return int64(n)
}

// foldersOf returns the flags for one of several models: folders that models write to get a
// subfolder for each, because two models cannot write to one.
func (cmd *serveCmd) foldersOf(model string) command.OpenFlags {
	open := cmd.OpenFlags
	for _, dir := range []*string{&open.Adapt, &open.Learned, &open.Memory} {
		if *dir != "" {
			*dir = filepath.Join(*dir, model)
		}
	}
	return open
}

// load opens a model, and refuses a drafter that cannot run, before any request does.
func (cmd *serveCmd) load(p *command.Program, m catalog.Model, open command.OpenFlags,
	o grove.Options) (*serve.Model, error) {
	open.Name = m.Name
	open.DraftModel, open.Head = m.Draft, m.Heads
	drafter := cmd.Drafter
	if drafter == "auto" {
		drafter = cmp.Or(m.Drafter, drafter)
	}
	g, err := open.OpenAt(p, m.Path, o)
	if err != nil {
		return nil, err
	}
	if !plain(drafter) {
		_, err = grove.Collect(g.GenerateTokens(context.Background(), []int32{0},
			grove.Request{MaxTokens: 1, Drafter: drafter}))
	}
	if err != nil {
		p.Close(g)
		if m.Drafter != "" && drafter == m.Drafter {
			err = fmt.Errorf("%s in the folder of %s: %v", hub.Manifest, m.Path, err)
		}
		return nil, err
	}
	return &serve.Model{Model: g, Drafter: drafter}, nil
}
