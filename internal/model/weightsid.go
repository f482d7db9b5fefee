package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// TargetWeightsKey is the key in a head's GGUF file for Network.WeightsID of the target for which
// the head was made. Only grove uses it.
const TargetWeightsKey = "grove.target.weights"

// WeightsID identifies the weights of a network, whatever type of file they come from. Quantising
// and converting change matrices, but norms are stored in F32, or in BF16 as published. So it is a
// hash of the architecture, the widths, and the last norm and those of the first layer, rounded to
// BF16. Padding does not change it.
func (n *Network) WeightsID() string {
	h := sha256.New()
	fmt.Fprintln(h, n.Config.Arch, n.Config.Hidden, n.Config.Vocab)
	first := &n.Blocks[0]
	for _, norm := range []*nn.Norm{&n.Norm, &first.AttnNorm, &first.MLPNorm, first.AttnPost, first.MLPPost} {
		if norm == nil {
			continue
		}
		for _, w := range norm.Weight {
			_ = binary.Write(h, binary.LittleEndian, uint16((math.Float32bits(w)+1<<15)>>16)) // writing to a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
