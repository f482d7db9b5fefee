// Package engine runs many requests over one target in shared passes.
//
// One goroutine takes steps while there is work. A step has three parts: choose, which drops
// requests whose context ended, admits waiting ones and makes room in the cache memory; a pass of
// package speculate's loop for all running requests, which combines rounds of speculation and
// chunks of prompts; deliver, which notifies the callers.
//
// The tokens of a request do not depend on the other requests: logits are the same to the bit in every batch, and noise
// is a function of seed, position and token. So the engine may stop a request at any step, drop its
// memory, and start it again later with its text as the prompt (preemption by recomputation).
//
// Input: requests by [Engine.Submit]. Output: updates after each step, by [Request].Step and Done, on
// the engine's goroutine. Read engine.go first, whose takeStep is a step; admit.go decides which
// requests run, prefix.go keeps beginnings of texts that were computed already.
package engine
