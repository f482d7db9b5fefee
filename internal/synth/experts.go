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
				x.hf, x.rows, x.experts = strings.Replace(t.hf, "*", strconv.Itoa(e), 1), rows, 0
				x.of = func(r int) (*planned, int) { return t, e*rows + r }
				list = append(list, x)
			}
		case t.half == 1: // the other half follows
			rows := t.rows / t.experts
			x := *t
			x.rows *= 2
			x.of = func(r int) (*planned, int) { return &plan[i+r/rows%2], r/rows/2*rows + r%rows }
			list = append(list, x)
		case t.half == 0:
			list = append(list, *t)
		}
	}
	return list
}
