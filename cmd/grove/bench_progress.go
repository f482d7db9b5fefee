package main

import "github.com/grovellm/grove/internal/bench"

// specProgress shows how far bench spec is, by generations; with --verbose each is named.
type specProgress struct {
	*progress
	p *program
}

func (p *program) specProgress() *specProgress {
	return &specProgress{p.progress("measuring", false), p}
}

func (s *specProgress) generation(q bench.SpecProgress) {
	s.p.logf("%d of %d: suite %s, %s, method %s", q.Done+1, q.Total, q.Suite, q.Prompt, q.Method)
	s.set(int64(q.Done), int64(q.Total))
}
