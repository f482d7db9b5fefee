// Package bench measures. The measurements of one run are interleaved, so that a machine that is
// busy for a moment slows all of them alike, and are reported as medians.
//
// Input: a model, its drafters, and a suite of prompts ([OpenSuite]). Output: reports, values that
// programs read, with their tables in Markdown and their figures. [Cost] times passes, [Spec] times
// methods of decoding over prompts, [Serve] times callers of one engine.
//
// Read spec.go first: generate.go has one method decoding one prompt, statistics.go what is made of
// the times. cost.go and serve.go stand alone.
// bench/eval has bits per byte, bench/presets the suites that are known by name.
package bench
