package main

import (
	"fmt"
	"time"

	"github.com/grovellm/grove/bench"
)

// specProgress shows how far bench spec is: a bar on a terminal, elsewhere a line now and then.
type specProgress struct {
	p     *program
	bar   *progress
	start time.Time
	said  time.Time
}

// sayEvery is the time between two lines.
const sayEvery = 30 * time.Second

func (p *program) specProgress() *specProgress {
	return &specProgress{p: p, bar: p.progress("measuring", false), start: time.Now(), said: time.Now()}
}

func (s *specProgress) set(q bench.SpecProgress) {
	s.p.logf("%d of %d: suite %s, %s, method %s", q.Done+1, q.Total, q.Suite, q.Prompt, q.Method)
	s.bar.set(int64(q.Done), int64(q.Total))
	if now := time.Now(); s.bar.w == nil && now.Sub(s.said) >= sayEvery && q.Done > 0 {
		s.said = now
		left := now.Sub(s.start) * time.Duration(q.Total-q.Done) / time.Duration(q.Done)
		fmt.Fprintf(s.p.stderr, "grove bench spec: %d of %d generations (suite %s), about %v left\n", q.Done, q.Total, q.Suite, left.Round(time.Second))
	}
}

func (s *specProgress) end() { s.bar.end() }
