// Package lab has no code: it is the laboratory, for people who study speculation or work on grove.
// cmd/grove-lab alone imports it.
//
// In come models and drafters as users have them; out come counterexamples and tables. Read
// lab/check/check.go first: the package searches for cases in which a law of docs/laws.md does not
// hold. lab/report runs the papers' experiments on a model as one page (experiments.go), and measures
// the tables of docs/benchmarks anew (measure.go). The measurements themselves are in internal/bench.
// lab/sibling trains a family with a larger vocabulary, to study output heads.
package lab
