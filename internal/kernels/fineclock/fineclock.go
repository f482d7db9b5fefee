// Package fineclock measures times as short as a wait of a worker. On Windows the clock of package time goes on by
// 0.5 to 16 milliseconds at once, which is longer than many passes.
package fineclock

import "time"

// Now is time.Now, with short ticks. Only times of Now are subtracted from one another.
var Now = time.Now

// Since is the time that has passed since a time of Now.
func Since(t time.Time) time.Duration { return Now().Sub(t) }
