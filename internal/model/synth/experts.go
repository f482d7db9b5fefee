package synth

import (
	"strconv"
	"strings"
)

// folderPlan returns a plan's tensors as folders have them: one tensor per expert, or
// gate and up in one tensor.
func folderPlan(plan []planned) (list []planned) {
	for i := range plan {
		t := &plan[i]
		switch {
		case strings.Contains(t.hf, "*"):
			rows := t.rows / t.experts
			for e := range t.experts {
				x := *t
				x.hf = strings.Replace(t.hf, "*", strconv.Itoa(e), 1)
				x.rows = rows
				x.experts = 0
				x.of = func(r int) (*planned, int) { return t, e*rows + r }
				list = append(list, x)
			}
		case t.half == 1 && t.split > 0:
			list = append(list, ofHeads(t, other(plan, t)))
		case t.turned && t.matrix:
			x := *t
			x.rows, x.cols = t.cols, t.rows
			x.cell = func(r, c int) (*planned, int, int) { return t, c, r }
			list = append(list, x)
		case t.half > 1: // listed with the first half
		case t.param && t.experts > 0:
			list = append(list, parameter(t, other(plan, t)))
		case t.mixed != nil:
			x := *t
			var parts []*planned
			for k := range plan {
				if plan[k].hf == t.hf {
					parts = append(parts, &plan[k])
				}
			}
			x.rows = t.mixed.Rows
			x.of = func(r int) (*planned, int) {
				part, row := t.mixed.Place(r)
				return parts[part-1], row
			}
			list = append(list, x)
		case t.half == 1:
			rows := t.rows / max(t.experts, 1)
			x, both := *t, []*planned{t, other(plan, t)}
			x.rows *= 2
			x.of = func(r int) (*planned, int) { return both[r/rows%2], r/rows/2*rows + r%rows }
			list = append(list, x)
		default:
			list = append(list, *t)
		}
	}
	return list
}

// other returns the tensor that shares a folder's tensor with t, or nil.
func other(plan []planned, t *planned) *planned {
	for i := range plan {
		if p := &plan[i]; p.hf == t.hf && p != t {
			return p
		}
	}
	return nil
}

// parameter returns a tensor of experts that is a bare parameter in transformers, not part of a
// module: a matrix is transposed, and the outputs of two halves alternate.
func parameter(t, second *planned) planned {
	x := *t
	halves := []*planned{t}
	rows := t.rows / t.experts
	if second != nil {
		halves = append(halves, second)
	}
	n := len(halves)
	if !t.matrix {
		x.rows *= n
		x.of = func(r int) (*planned, int) { return halves[r%n], r / n }
		return x
	}
	x.rows, x.cols = t.experts*t.cols, n*rows
	if t.sides {
		x.cell = func(r, c int) (*planned, int, int) { return halves[c/rows], r/t.cols*rows + c%rows, r % t.cols }
		return x
	}
	x.cell = func(r, c int) (*planned, int, int) { return halves[c%n], r/t.cols*rows + c/n, r % t.cols }
	return x
}

// ofHeads returns latent attention's tensor that has each head's keys, transposed, followed by its values.
func ofHeads(keys, values *planned) planned {
	x := *keys
	plain, rank := keys.cols, values.cols
	x.rows, x.cols = keys.experts*keys.split, rank
	x.cell = func(r, c int) (*planned, int, int) {
		h, i := r/keys.split, r%keys.split
		if i < plain {
			return keys, h*rank + c, i
		}
		return values, h*(keys.split-plain) + i - plain, c
	}
	x.experts = 0
	return x
}
