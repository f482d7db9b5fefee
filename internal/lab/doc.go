// Package lab has no code: its subdirectories are the laboratory, for people who study speculation
// or work on grove. Only cmd/grove-lab imports it.
//
// Input: models and drafters as users have them. Output: counterexamples and tables. Read
// lab/check/check.go first: the package searches for cases in which a law of docs/laws.md does not
// hold. lab/report runs the papers' experiments on a model as one page (experiments.go), and measures
// the tables of docs/benchmarks anew (measure.go). The measurements themselves are in internal/bench.
// lab/sibling trains a family with a larger vocabulary, to study output heads.
package lab
