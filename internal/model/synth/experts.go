package synth

import (
	"strconv"
	"strings"
)

// folderPlan is a plan's tensors as folders have them: those of experts one by one, or gate and up in
// one.
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
		case t.half == 2: // with the first
		case t.param && t.experts > 0:
			list = append(list, parameter(t, other(plan, t)))
		case t.mixed != nil:
			x, both := *t, []*planned{t, other(plan, t)}
			x.rows = t.mixed.Rows
			x.of = func(r int) (*planned, int) {
				part, row := t.mixed.Place(r)
				return both[part-1], row
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

// other is the tensor that shares a folder's tensor with t; nil where none does.
func other(plan []planned, t *planned) *planned {
	for i := range plan {
		if p := &plan[i]; p.hf == t.hf && p != t {
			return p
		}
	}
	return nil
}

// parameter is a tensor of experts that transformers has in no module: a matrix is transposed, and the
// outputs of two halves take turns.
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
	x.cell = func(r, c int) (*planned, int, int) { return halves[c%n], r/t.cols*rows + c/n, r % t.cols }
	return x
}

// ofHeads is the tensor that has each head's keys, transposed, and values, of latent attention.
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
