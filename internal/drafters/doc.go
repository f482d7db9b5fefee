// Package drafters has no code: its subdirectories hold the drafters, with one package for each
// family and one for each part that families share.
//
// Input: requests of package draft: the text of a sequence, the target's rows of it, a root, a budget
// and a guide that says when to stop. Output: trees of candidates under the roots. A drafter may be
// slow or wrong, but the target's text does not depend on it.
//
// Read draft.Drafter first (package draft), then lookup, a drafter without a network, and medusa, a
// short one with a head. What families share: grow (trees that grow step by step), onepass (trees
// of one pass's distributions), sequence, shortlist, treebuild, textrank, textstore, calibrate, learn.
// docs/write-a-drafter.md writes one, part by part.
package drafters
