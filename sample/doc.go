// Package sample turns logits into a token.
//
// The law: the token at an absolute position is a pure function of the logits' bits, the Params, the
// position, and the tokens before it. It does not depend on the machine, on what was sampled before, or on
// how the logits were come by, so a drafted token may be checked simply by sampling where it would stand.
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
// beginning of that order, and exactly k tokens survive top-k.
//
// At temperature 0 the token is the first in that order. Above 0 it is the one with the largest
// logit/temperature + noise among those kept, where the noise is standard Gumbel, a pure function
// of (seed, position, token) (see Noise). The largest of logits with independent Gumbel noise is
// distributed exactly as their softmax (the Gumbel-max trick), so this is sampling; and since the
// noise is known beforehand, a drafter can rank its candidates with it (docs/design.md, law 2).
//
// Any logits are answered: NaN counts as minus infinity, minus infinity is never drawn beside a
// larger logit, plus infinity beats every number, and where no logit exceeds minus infinity the token is 0.
package sample
