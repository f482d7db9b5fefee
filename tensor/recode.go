package tensor

import (
	"encoding/binary"
	"fmt"
)

// ToQ8_0 recodes blocks of Q4_0 or Q5_0 as the Q8_0 of the same scales, which are the same numbers to the bit.
func ToQ8_0(t Type, src, dst []byte) error {
	n, size := t.Block()
	if t != Q4_0 && t != Q5_0 || len(src)%size != 0 || len(dst) != len(src)/size*34 {
		return fmt.Errorf("%d bytes of %v cannot be %d bytes of Q8_0", len(src), t, len(dst))
	}
	for ; len(src) > 0; src, dst = src[size:], dst[34:] {
		high, low, less := uint32(0), src[2:size], int8(8)
		if t == Q5_0 {
			high, low, less = binary.LittleEndian.Uint32(src[2:]), src[6:size], 16
		}
		copy(dst, src[:2])
		q := dst[2 : 2+n]
		for i, b := range low {
			q[i] = byte(int8(b&15|byte(high>>i&1<<4)) - less)
			q[i+16] = byte(int8(b>>4|byte(high>>(i+16)&1<<4)) - less)
		}
	}
	return nil
}
