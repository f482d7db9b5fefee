// Package speculate is the loop of tree speculation: propose, verify, accept, commit, for one or many
// sequences in one pass of the target.
//
// A round of a sequence starts at its root, the last token of its text, whose row the target has not computed yet.
// The drafter grows a tree under the root; one pass computes logits for every node; the acceptance rule walks down
// from the root, choosing the target's own token at each node it visits, as long as a child carries it. Every
// chosen token is emitted: the drafted ones, and the bonus token, for which there was no node. The cache keeps the
// rows of the path walked; the bonus token is the next root. Without a drafter, or where it proposes nothing, the
// tree is its root and this is plain decoding.
//
// The Controller decides how much is proposed and verified (package control).
//
// The tokens are those of plain decoding, whatever is proposed and decided, because a token is a function of its
// context alone: the same logits to the bit for the same context (docs/design.md, law 1), and a sampler whose
// noise depends on the seed, the position and the token (package sample). That is the acceptance rule "coupled"; under
// "rejection" they have the same distribution (see rejection). So a sequence may be closed at any
// step and started again with its text as the prompt: its text goes on as it would have.
//
// The package never asks which drafter it has.
//
// Input: sequences, each with a text and a drafter. Output: their next tokens. Read takeStep in
// speculate.go first, then round.go, one sequence's part in a step, and accept.go. Package
// speculate/control decides how much is drafted, speculate/reject is rejection sampling.
package speculate
