package gguf

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
)

// place turns the tensors' offsets into positions in the file and checks that each lies in it,
// aligned, and alone: names that occur twice and ranges that overlap are refused, as llama.cpp
// refuses them; gaps and any order are fine.
func (h *header) place(headerEnd, fileSize uint64) error {
	h.alignment = defaultAlignment
	for _, kv := range h.meta {
		if kv.key != alignmentKey {
			continue
		}
		a, ok := As[uint64](kv.value)
		if !ok || bits.OnesCount64(a) != 1 || a > maxAlignment {
			return fail("key "+fileerr.Quote(alignmentKey), remedyWrong, "is %v (%v), want a power of two",
				kv.value, kv.value.Type())
		}
		h.alignment = a
	}
	start := align(headerEnd, h.alignment)

	seen := make(map[string]bool, len(h.tensors))
	order := make([]int, len(h.tensors))
	for i := range h.tensors {
		t := &h.tensors[i]
		order[i] = i
		field := "tensor " + fileerr.Quote(t.Name)
		if seen[t.Name] {
			return fail(field, remedyWrong, "occurs twice")
		}
		seen[t.Name] = true
		off, size := uint64(t.offset), uint64(t.Size) // both below 1<<63, so sums of two do not wrap
		if off%h.alignment != 0 {
			return fail(field, remedyWrong, "its offset %d is not a multiple of the alignment %d", off, h.alignment)
		}
		if start > fileSize || off > fileSize-start || size > fileSize-start-off {
			return fail(field, remedyCut, "its %d bytes at %d+%d go beyond the end of the file at %d", size, start, off, fileSize)
		}
		t.offset = int64(start + off)
	}

	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(h.tensors[a].offset, h.tensors[b].offset) })
	last := -1 // the tensor that reaches furthest so far
	for _, i := range order {
		t := &h.tensors[i]
		if t.Size == 0 {
			continue // of unknown type, and so of unknown size
		}
		if last >= 0 && t.offset < h.tensors[last].offset+h.tensors[last].Size {
			return fail("tensor "+fileerr.Quote(t.Name), remedyWrong, "its data overlaps that of tensor %s",
				fileerr.Quote(h.tensors[last].Name))
		}
		last = i
	}
	return nil
}

func align(n, to uint64) uint64 { return (n + to - 1) / to * to }
