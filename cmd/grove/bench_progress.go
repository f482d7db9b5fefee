package main

import (
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
)

// specProgress shows how many generations bench spec has done; with --verbose it names each.
type specProgress struct {
	*command.Progress
	p *command.Program
}

func newSpecProgress(p *command.Program) *specProgress {
	return &specProgress{p.Progress("measuring", false), p}
}

func (s *specProgress) generation(q bench.SpecProgress) {
	s.p.Logf("%d of %d: suite %s, %s, method %s", q.Done+1, q.Total, q.Suite, q.Prompt, q.Method)
	s.Set(int64(q.Done), int64(q.Total))
}
