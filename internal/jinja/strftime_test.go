package jinja

import (
	"testing"
	"time"
)

func TestStrftime(t *testing.T) {
	now := time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC)
	if got := strftime("%d %b %Y|%A %B %-d|%H:%M:%S|%I %p|%j|%%|%q|%y%",
		now); got != "05 Mar 2026|Thursday March 5|07:08:09|07 AM|064|%|%q|26%" {
		t.Error(got)
	}
	if got := strftime("%H:%M%Z%z|%e", now); got != "07:08| 5" {
		t.Error(got)
	}
	midnight := time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)
	if got := strftime("%-H:%-M:%-S %-y", midnight); got != "0:0:0 26" {
		t.Error(got)
	}
}
