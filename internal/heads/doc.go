// Package heads tells the kinds of draft heads apart, for code that is given a file and does not
// draft. It imports one package for each kind.
//
// Input: a file or folder. Output: its kind of head, whether it fits a target, and a line that describes it.
// Read headfile first: a headfile.Kind names the keys, fields and tensors of a kind once, and headfile
// reads, checks and writes by them. Each family's Kind stands in its own package, such as
// internal/drafters/medusa. How heads draft is in internal/drafters, how they are trained in internal/train.
package heads
