package gguf

import (
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
)

// A model can be split into files NAME-00001-of-00003.gguf and so on. Each says which it is, from 0, and of how many;
// the first has the metadata, each has the description and data of its own tensors.
const (
	splitNo      = "split.no"
	splitCount   = "split.count"
	splitTensors = "split.tensors.count"
)

// openSplit opens the other parts when the file opened is the first of several.
func (f *File) openSplit() error {
	count, split := Get[uint64](f, splitCount)
	if !split || count <= 1 {
		return nil
	}
	field := "key " + fileerr.Quote(splitCount)
	if count > math.MaxUint16 {
		return f.fault(0, fail(field, remedyWrong, "a model in %d parts", count))
	}
	no, ok := Get[uint64](f, splitNo)
	if !ok {
		return f.fault(0, fail("key "+fileerr.Quote(splitNo), remedyWrong, "is missing"))
	}
	if no != 0 {
		return f.fault(0, fail("key "+fileerr.Quote(splitNo),
			fmt.Sprintf("open the part whose name ends in -00001-of-%05d.gguf", count),
			"this is part %d of %d of a split model", no+1, count))
	}
	suffix := fmt.Sprintf("-%05d-of-%05d.gguf", 1, count)
	base, ok := strings.CutSuffix(f.Path, suffix)
	if !ok {
		return f.fault(0, fail(field, "rename it so that its parts can be found",
			"the first of %d parts must have a name ending in %s", count, suffix))
	}
	for i := 1; i < int(count); i++ {
		path := fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, count)
		p, err := infile.Open(path)
		if err != nil {
			return fileerr.Opening("gguf", path, err)
		}
		h, err := f.addPart(p)
		if err != nil {
			return err
		}
		for _, kv := range h.meta {
			if n, _ := As[uint64](kv.value); kv.key == splitNo && n != uint64(i) || kv.key == splitCount && n != count {
				return f.fault(i, fail("key "+fileerr.Quote(kv.key), "take all parts from one download",
					"is %d in part %d of %d", n, i+1, count))
			}
		}
		for _, t := range h.tensors {
			t.Part = i
			f.Tensors = append(f.Tensors, t)
		}
	}
	if want, ok := Get[uint64](f, splitTensors); ok && want != uint64(len(f.Tensors)) {
		return f.fault(0, fail("key "+fileerr.Quote(splitTensors), "take all parts from one download",
			"announces %d tensors, but the parts hold %d", want, len(f.Tensors)))
	}
	return nil
}
