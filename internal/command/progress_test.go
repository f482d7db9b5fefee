package command

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Without a terminal a line is written now and then, which says how much is done and when the rest will be.
func TestProgressInALog(t *testing.T) {
	var log bytes.Buffer
	start := time.Now()
	b := &Progress{program: "grove", w: &log, what: "queries", start: start, said: start}
	for i := range int64(100) {
		b.say(start.Add(time.Duration(i)*time.Second), i, 200)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || lines[1] != "grove: queries: 30 % done, about 2m20s left" {
		t.Errorf("lines at 30, 60 and 90 seconds of 200:\n%s", log.String())
	}
}
