// The models of grove serve.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/engine"
	"github.com/grovellm/grove/internal/catalog"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

// sources are the models that the flags name.
func (cmd *serveCmd) sources(p *program, log *slog.Logger) ([]serve.Source, error) {
	base := grove.Options{Parallel: cmd.Parallel, Queue: cmd.Queue}
	var err error
	if base.CacheMemory, err = parseSize(cmd.CacheMemory); err != nil {
		return nil, usagef("--cache-memory %q: %v", cmd.CacheMemory, err)
	}
	if cmd.Template != "" {
		if base.ChatTemplate, err = readText(cmd.Template); err != nil {
			return nil, fmt.Errorf("--template: %w", err)
		}
	}
	list, err := cmd.find(log)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		base.Progress = func(done, total int64) {} // the log says what is loaded
	}
	var sources []serve.Source
	for _, m := range list {
		bytes, err := m.Bytes()
		if m.Path == "" {
			bytes, err = embeddedBytes(), nil
		}
		if err != nil {
			return nil, err
		}
		bytes += cmp.Or(base.CacheMemory, engine.DefaultPrefixMemory)
		load := func() (*serve.Model, error) {
			if len(list) == 1 {
				return cmd.load(p, m, cmd.openFlags, base)
			}
			opened, err := cmd.load(p, m, cmd.foldersOf(m.Name), base)
			if err != nil {
				err = errors.New(inFlags(err)) // for the log
			}
			return opened, err
		}
		sources = append(sources, serve.Source{Name: m.Name, Bytes: bytes, Load: load})
	}
	return sources, nil
}

// find lists the models that -m names, with what drafts for each.
func (cmd *serveCmd) find(log *slog.Logger) (list []catalog.Model, err error) {
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
			return nil, usagef("%s is for one model, and there are %d: grove.json beside the models says what drafts for each",
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

// embeddedBytes is the memory that the models in the program take.
func embeddedBytes() int64 {
	n := len(models.Target()) + len(models.Draft())
	for _, head := range models.Heads() {
		n += len(head)
	}
	return int64(n)
}

// foldersOf are the flags with a folder for one of several models wherever one is kept for a model:
// two models cannot write to one.
func (cmd *serveCmd) foldersOf(model string) openFlags {
	open := cmd.openFlags
	for _, dir := range []*string{&open.Adapt, &open.Learned, &open.Memory} {
		if *dir != "" {
			*dir = filepath.Join(*dir, model)
		}
	}
	return open
}

// load opens a model, and refuses a drafter that cannot run before a request does.
func (cmd *serveCmd) load(p *program, m catalog.Model, open openFlags, o grove.Options) (*serve.Model, error) {
	open.DraftModel, open.Head = m.Draft, m.Heads
	drafter := cmd.Drafter
	if drafter == "auto" {
		drafter = cmp.Or(m.Drafter, drafter)
	}
	g, err := open.openAt(p, m.Path, o)
	if err != nil {
		return nil, err
	}
	if !plain(drafter) {
		_, err = grove.Collect(g.GenerateTokens(context.Background(), []int32{0},
			grove.Request{MaxTokens: 1, Drafter: drafter}))
	}
	if err != nil {
		p.close(g)
		return nil, err
	}
	return &serve.Model{Model: g, Drafter: drafter}, nil
}
