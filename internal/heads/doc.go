// Package heads tells the kinds of drafters' heads apart, for those who are given a file and do not
// draft. The packages that it imports are the kinds that there are.
//
// In comes a file or folder; out comes what kind of head it is, whether it fits a target, and a line that
// describes it. Read headfile first: a headfile.Kind names the keys, fields and tensors of a kind once,
// and headfile reads, checks and writes by them. Each family's Kind stands in its own package, such as
// internal/drafters/medusa. How heads draft is in internal/drafters, how they are trained in internal/train.
package heads
