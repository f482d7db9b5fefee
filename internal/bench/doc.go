// Package bench measures. What it measures in one run is interleaved, so that a machine that is
// busy for a moment slows every figure alike, and is reported as medians.
//
// In come a model, its drafters, and a suite of prompts ([OpenSuite]); out come reports: values that
// programs read, with their tables in Markdown and their figures. [Cost] times passes, [Spec] times
// methods of decoding over prompts, [Serve] times callers of one engine.
//
// Read spec.go first: generate.go has one method decoding one prompt, order.go the order in which
// methods take turns, statistics.go what is made of the times. cost.go and serve.go stand alone.
// bench/eval has bits per byte, bench/presets the suites that are known by name.
package bench
