//go:build (!amd64 && !arm64) || purego

package gemm

import (
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

const farAhead = false // see streamAhead

func engineFor(Type, cpu.Level, bool) (engine, bool) { return engine{}, false }

func (*engine) run(*tile) {}

const wideStep = 0

var engines [1]engine

func (*engine) unpack(unsafe.Pointer, unsafe.Pointer, int) {}

func pairsAt(cpu.Level) bool { return false }

func mulFew(*fewTile) { panic("gemm: there are no pairs") }

func roundRow([]byte, []float32, cpu.Level) int { return 0 }

func pairRow([]byte, []float32) int { return 0 }

func quantizeRowAsm([]byte, []float32, Type, cpu.Level) bool { return false }

func readAsm([]byte, cpu.Level) (uint64, int) { return 0, 0 }

func peakAsm(Type, cpu.Level, int) int { return 0 }

func packedEngine(Type, cpu.Level) (engine, bool) { return engine{}, false }

func packPairs([]byte, []float32, int, int) int { return 0 }

// expandAsm has no assembly here: panels are unpacked in Go.
func expandAsm(Type, *[super / block * wideWords]uint32, unsafe.Pointer) bool { return false }
