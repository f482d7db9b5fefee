// Package bench measures. What it measures in one run is interleaved, so that a machine that is
// busy for a moment slows every figure alike, and is reported as medians.
package bench
