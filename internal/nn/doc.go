// Package nn holds the layers every network here is made of, targets and drafters alike.
//
// An [Exec] runs operations over the rows of one pass. A row is one new token of one
// sequence; the rows of a sequence form a tree, and the rows of several sequences a forest
// ([Forest]). A row sees the committed rows of its sequence's [Cache] and its own ancestors,
// which is all that attention knows: prefill, plain decoding, verifying a draft tree and
// serving a batch are the same call with another forest.
//
// # Same bits
//
// What an operation computes for a row depends on that row's inputs alone: not on the other
// rows of the pass, on where in the cache a row is stored, or on how many workers share the
// work. Products keep outputs in lanes and walk the inputs in order (internal/kernels/gemm);
// attention takes scores and weights in position order. Tests hold every layer to it, bit for bit.
//
// # One definition
//
// Operations are methods of Exec that read their inputs and write their outputs through [Mat] values, and each is the
// composition its comment names: the layers above this package never touch an activation themselves. So a [Recorder],
// which is notified of each operation, can compute gradients through a network, and it is the same network that
// serves. Package internal/autograd does.
//
// # To read
//
// Input: the rows of a pass, weights and caches. Output: activations, and keys and values in the
// caches. Read block.go first, a layer from its operations, then attention.go and cache.go. plan.go
// defers operations and runs them together, strip.go divides work by rows instead of by weights.
package nn
