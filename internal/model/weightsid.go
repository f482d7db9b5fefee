package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// TargetWeightsKey is the key of a head's GGUF file that holds Network.WeightsID of the target that
// the head was made for. It is grove's own.
const TargetWeightsKey = "grove.target.weights"

// WeightsID tells the weights of a network apart from others', whatever type of file they come from: quantising and
// converting change matrices, but norms are stored in F32, or in BF16 as they were published. So it is a hash of the
// architecture, the widths, and the last norm and those of the first layer, rounded to BF16.
// Padding does not change it.
func (n *Network) WeightsID() string {
	h := sha256.New()
	fmt.Fprintln(h, n.Config.Arch, n.Config.Hidden, n.Config.Vocab)
	first := &n.Blocks[0]
	for _, norm := range []*nn.Norm{&n.Norm, &first.AttnNorm, &first.MLPNorm, first.AttnPost, first.MLPPost} {
		if norm == nil {
			continue
		}
		for _, w := range norm.Weight {
			_ = binary.Write(h, binary.LittleEndian, uint16((math.Float32bits(w)+1<<15)>>16)) // a hash takes all
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
