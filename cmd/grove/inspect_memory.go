package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// memoryUse is the memory that an open model's weights take.
type memoryUse struct {
	Bytes    int64        `json:"bytes"`
	OverFile float64      `json:"over_file"` // Bytes divided by those of the file
	Types    []typeMemory `json:"types"`
}

type typeMemory struct {
	Type      string `json:"type"`    // in the file
	RunsAs    string `json:"runs_as"` // in memory
	Tensors   int    `json:"tensors"`
	FileBytes int64  `json:"file_bytes"`
	Bytes     int64  `json:"bytes"` // in memory
}

// addMemory adds the memory that the model at path takes, or a note of why grove does not run it.
func (c *contents) addMemory(path string) {
	types, err := model.ReadMemory(path)
	if err != nil {
		c.note("grove does not run it: %v", err)
		return
	}
	m := &memoryUse{}
	for _, t := range types {
		m.Types = append(m.Types, typeMemory{t.Type.String(), t.As.String(), t.Tensors, t.File, t.Memory})
		m.Bytes += t.Memory
		if slices.Contains([]tensor.Type{numtype.F8_E4M3, numtype.NVFP4, numtype.NF4, numtype.FP4}, t.Type) {
			c.note("%d tensors of %v become %v when the model is opened: grove convert --type q8_0 writes a file that takes less memory",
				t.Tensors, t.Type, t.As)
		}
	}
	m.OverFile = float64(m.Bytes) / float64(c.Bytes)
	c.Memory = m
}

func (m *memoryUse) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nweights in memory: %s, %.2f × the file\n", command.Size(m.Bytes), m.OverFile)
	for _, s := range m.Types {
		fmt.Fprintf(t, "  %s runs as %s\t%d tensors\t%s\t%.2f × its bytes in the file\n",
			s.Type, s.RunsAs, s.Tensors, command.Size(s.Bytes), float64(s.Bytes)/float64(s.FileBytes))
	}
	return t.Flush()
}
