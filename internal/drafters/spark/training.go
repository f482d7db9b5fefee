package spark

import "github.com/grovellm/grove/internal/nn"

// Correction is the layers that are trained in addition to a block's. Domino's are not trained.
type Correction struct {
	Before nn.Table   // a row for the previous token: DSpark's W1, DFlash 2's A
	Token  *nn.Linear // a row for each scored token: W2 or S
	Mix    *nn.Linear // DSpark's gate, or DFlash 2's H
	Sure   *nn.Linear // DSpark's confidence; nil: none
}

// Correction returns the network's correction.
func (n *Network) Correction() Correction {
	c := Correction{Before: n.before, Token: &n.token, Mix: &n.mix}
	if n.Confidence != noConfidence {
		c.Sure = &n.sure
	}
	return c
}
