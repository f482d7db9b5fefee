//go:build !purego

package gemm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// On a machine whose processor claims a feature, the kernels built on it must be the ones
// that run. Otherwise every other test here passes by testing less.
func TestClaimedLevelsRun(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip("no list of processor features to hold the levels against")
	}
	_, flags, _ := strings.Cut(string(info), "\nflags")
	flags, _, _ = strings.Cut(flags, "\n")
	claims := func(names ...string) bool {
		for _, n := range names {
			if !strings.Contains(flags+" ", " "+n+" ") {
				return false
			}
		}
		return true
	}
	avx512 := claims("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni")
	for l, claimed := range map[cpu.Level]bool{
		cpu.AVX2:       claims("avx2", "fma", "f16c"),
		cpu.AVXVNNI:    claims("avx2", "fma", "f16c", "avx_vnni"),
		cpu.AVX512:     avx512,
		cpu.AVX512BF16: avx512 && claims("avx512_bf16"),
	} {
		if claimed != cpu.Has(l) {
			t.Errorf("the processor has what level %v needs: %v; level taken for had: %v", l, claimed, cpu.Has(l))
		}
		if !claimed || !cpu.Has(l) {
			continue
		}
		for _, typ := range allTypes {
			var x Input
			func() {
				defer cpu.Use(l)()
				x.Reset(typ, 1, typ.whole())
			}()
			e, ok := engineFor(typ, x.level, x.pairs)
			below, _ := engineFor(typ, l-1, false)
			own := map[cpu.Level]bool{cpu.AVX2: true, cpu.AVXVNNI: typ.integer(), cpu.AVX512: true, cpu.AVX512BF16: x.pairs}[l]
			if !ok || own && e == below {
				t.Errorf("%v at level %v runs no kernel of that level", typ, l)
			}
			if typ == BF16 && x.pairs != (l == cpu.AVX512BF16) {
				t.Errorf("at level %v bf16 activations are pairs: %v", l, x.pairs)
			}
		}
	}
}

// A bf16 of a pair is the bf16 of the other levels.
func TestPairsRoundAlike(t *testing.T) {
	if cpu.Best() < cpu.AVX512BF16 {
		t.Skip("this processor has no VDPBF16PS")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		v := make([]float32, 1+r.IntN(100))
		for k := range v {
			v[k] = value(r, true)
			if r.IntN(2) == 0 {
				v[k] = math.Float32frombits(r.Uint32())
			}
			if r.IntN(3) == 0 { // ties between bf16
				v[k] = math.Float32frombits(math.Float32bits(v[k])&0xffff0000 | 0x8000)
			}
		}
		var x Input
		x.reset(BF16, 1, len(v), cpu.AVX512BF16, true)
		x.SetRow(0, v)
		for k := range v {
			if got, want := binary.LittleEndian.Uint16(x.buf[k*2:]), toBF16(v[k]); got != want {
				t.Fatalf("%x as one of a pair is %#04x, want %#04x", v[k], got, want)
			}
		}
	}
}

// VDPBF16PS is two FMAs, on any bits at all.
func TestNativePairsAreFMAs(t *testing.T) {
	if cpu.Best() < cpu.AVX512BF16 {
		t.Skip("this processor has no VDPBF16PS")
	}
	if !nativePairs() {
		t.Skip("VDPBF16PS is not two FMAs here; the kernels do without it")
	}
	const in, n, tries = 16, 8, 3000
	m, err := New(BF16, Panel, in)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range tries {
		exp := r.IntN(120)
		bits := func() uint16 {
			if r.IntN(2) == 0 {
				return uint16(r.Uint32())
			}
			return uint16(r.Uint32())&0x807f | uint16(exp+r.IntN(24))<<7
		}
		for i := 0; i < len(m.data); i += 2 {
			binary.LittleEndian.PutUint16(m.data[i:], bits())
		}
		var x [2]Input
		var dst [2][n * Panel]float32
		row := make([]float32, in)
		x[0].reset(BF16, n, in, cpu.AVX512, false)
		x[1].reset(BF16, n, in, cpu.AVX512BF16, true)
		for i := range n {
			exp = 254 - exp // products about 1, or about the smallest normal
			if i%2 == 0 {
				exp = max(0, exp-127)
			}
			for k := range row {
				row[k] = math.Float32frombits(uint32(bits()) << 16)
			}
			x[0].SetRow(i, row)
			x[1].SetRow(i, row)
		}
		for i := range x {
			m.Mul(dst[i][:], Panel, &x[i], 0, 1)
		}
		for i := range dst[0] {
			if !same(dst[0][i], dst[1][i]) {
				t.Fatalf("two FMAs give %x, VDPBF16PS %x", dst[0][i], dst[1][i])
			}
		}
	}
}
