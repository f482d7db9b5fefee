package spark

import "github.com/grovellm/grove/internal/nn"

// Correction is the layers beyond a block's that are trained with it. Domino's are not.
type Correction struct {
	Before nn.Table   // a row for the token before: DSpark's W1, DFlash 2's A
	Token  *nn.Linear // a row for each token that is scored: W2, or S
	Mix    *nn.Linear // DSpark's gate, or DFlash 2's H
	Sure   *nn.Linear // DSpark's confidence; nil: there is none
}

// Correction is the network's.
func (n *Network) Correction() Correction {
	c := Correction{Before: n.before, Token: &n.token, Mix: &n.mix}
	if n.Confidence != noConfidence {
		c.Sure = &n.sure
	}
	return c
}
