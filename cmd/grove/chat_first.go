// The first chat: a model to talk with, for a person who has none.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/hub"
)

// firstModel is the published model that grove chat offers. The program contains a draft head for its weights.
var firstModel = hub.Name{Repo: "bartowski/SmolLM2-135M-Instruct-GGUF", What: "Q8_0"}

const (
	firstTitle   = "SmolLM2-135M-Instruct"
	firstLicence = "Apache-2.0"

	firstWait = 10 * time.Second // for the hub's list of files
)

// offerModel returns the path of a model to talk with if none is named: the published one if it is in the
// cache, or if the person at the terminal agrees to fetch it. An empty path means grove's small model.
func offerModel(p *command.Program) (path string, err error) {
	if !command.IsTerminal(p.Stdin) || !command.IsTerminal(p.Stdout) {
		return "", nil
	}
	c, err := hub.FromEnv()
	if err != nil {
		return "", err
	}
	if path, err := c.Find(firstModel); err == nil {
		fmt.Fprintf(p.Stderr, "This chat is with %s, which was fetched before. -m names another model.\n", firstTitle)
		return path, nil
	}
	fmt.Fprintln(p.Stderr, "The model built into grove shows how grove works; it is not an assistant.")
	ctx, stop := p.Context()
	defer stop()
	bytes, err := firstBytes(ctx, c)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		fmt.Fprintf(p.Stderr, "A published model cannot be fetched now (%v).\n", err)
		return "", nil
	}
	question := fmt.Sprintf("Fetch %s (%s, %s) from %s to chat with? [Y/n] ", firstTitle, command.Size(bytes),
		firstLicence, c.Endpoint)
	answer, err := openLines(p, question, "").read(ctx)
	if err != nil {
		return "", err
	}
	if !slices.Contains([]string{"", "y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		fmt.Fprintf(p.Stderr, "grove pull ORG/REPO fetches a model, and -m ORG/REPO runs it.\n")
		return "", nil
	}
	bars := newHubBars(p, c)
	_, _, path, err = fetchModel(ctx, c, firstModel)
	bars.end()
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(p.Stderr, "The part that was fetched is kept: run the same command again to continue.")
	}
	return path, err
}

// firstBytes is the size of the model on the hub.
func firstBytes(ctx context.Context, c *hub.Client) (int64, error) {
	ctx, stop := context.WithTimeout(ctx, firstWait)
	defer stop()
	l, err := c.List(ctx, firstModel.Repo)
	if err != nil {
		return 0, err
	}
	m, err := hub.Choose(l.Files, firstModel.What)
	return m.Bytes(), err
}
