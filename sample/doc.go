// Package sample turns logits into a token.
//
// The law: the token at an absolute position is a pure function of the logits' bits, the Params, the
// position, and the tokens before it. It does not depend on the machine, on earlier samples, or on how the
// logits were computed, so a drafted token can be verified by sampling at its position.
//
// Processors run in this order:
//
//  1. repetition, presence and frequency penalties, for tokens of the text before the position;
//  2. logit bias;
//  3. temperature;
//  4. top-k: the k largest logits;
//  5. top-p: of those, the fewest whose probability reaches p, renormalised after top-k;
//  6. min-p: of those, the ones at least min-p times as likely as the likeliest.
//
// Tokens are ordered by logit, the lower id first where two are equal, so each of the last three keeps a
// prefix of that order, and exactly k tokens survive top-k.
//
// At temperature 0 the token is the first in that order. Above 0 it is the one with the largest
// logit/temperature + noise among those kept, where the noise is standard Gumbel, a pure function
// of (seed, position, token) (see Noise). The argmax of logits with independent Gumbel noise is
// distributed exactly as their softmax (the Gumbel-max trick), so this is sampling. Since the noise
// is known beforehand, a drafter can rank its candidates with it (docs/design.md, law 2).
//
// All logits are valid: NaN counts as minus infinity, minus infinity is never drawn if there is a larger
// logit, plus infinity beats every number, and if all logits are minus infinity the token is 0.
package sample
