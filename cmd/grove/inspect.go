package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/files/numtype"
)

type inspectCmd struct {
	File    string `arg:"" hub:"" help:"GGUF, safetensors or PyTorch file, or Hugging Face folder."`
	Tensors bool   `negatable:"" default:"true" help:"List every tensor."`
	Full    bool   `help:"Print arrays and long strings in full."`
}

func (inspectCmd) Help() string {
	return `Shows the contents of a file without loading it: architecture, metadata, tensors with type, shape and size, totals,
and the memory that the model takes when it runs.

Examples:
    grove inspect qwen3-0.6b-q8_0.gguf           (or -m qwen3-0.6b-q8_0.gguf)
    grove inspect --no-tensors qwen3-0.6b/
    grove inspect --json model.safetensors | jq '.tensors[] | select(.type == "F32") | .name'`
}

// contents is what inspect prints.
type contents struct {
	File         string        `json:"file"`
	Format       string        `json:"format"`
	Bytes        int64         `json:"bytes"`
	Parts        int           `json:"parts,omitempty"` // number of files of a split model
	Architecture string        `json:"architecture,omitempty"`
	Name         string        `json:"name,omitempty"`
	Parameters   int64         `json:"parameters"`        // number of elements in all tensors
	Padding      int64         `json:"padding,omitempty"` // number of these that are padding
	Metadata     []metaEntry   `json:"metadata"`
	Tensors      []tensorEntry `json:"tensors,omitempty"`
	Types        []typeTotal   `json:"types"`
	Memory       *memoryUse    `json:"memory,omitempty"` // for a model that grove runs
	Notes        []string      `json:"notes,omitempty"`
	count        int           // number of tensors
}

type metaEntry struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
	text  string // for people
}

type tensorEntry struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
	Bytes int64  `json:"bytes"`
	Part  int    `json:"part,omitempty"`
}

type typeTotal struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// addTensor counts a tensor and keeps its entry when keep is set.
func (c *contents) addTensor(t tensorEntry, keep bool) {
	n, err := numtype.CountElements(t.Shape)
	if err == nil {
		c.Parameters += int64(n)
	}
	c.count++
	if keep {
		c.Tensors = append(c.Tensors, t)
	}
	for i := range c.Types {
		if c.Types[i].Type == t.Type {
			c.Types[i].Tensors++
			c.Types[i].Bytes += t.Bytes
			return
		}
	}
	c.Types = append(c.Types, typeTotal{t.Type, 1, t.Bytes})
}

// mainType returns the type that accounts for most of the tensors' bytes.
func (c *contents) mainType() string {
	best := typeTotal{}
	for _, t := range c.Types {
		if t.Bytes > best.Bytes {
			best = t
		}
	}
	return best.Type
}

func (cmd *inspectCmd) Run(p *command.Program) error {
	c, err := readContents(cmd.File, cmd.Tensors, cmd.Full)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(c)
	}
	return c.print(p.Stdout)
}

func (c *contents) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %s", c.File, c.Format, command.Size(c.Bytes))
	if c.Parts > 1 {
		fmt.Fprintf(w, " in %d files", c.Parts)
	}
	fmt.Fprintln(w)
	if c.Architecture != "" {
		fmt.Fprintf(w, "architecture: %s", command.PlainText(c.Architecture))
		if c.Name != "" {
			fmt.Fprintf(w, ", name: %s", command.PlainText(c.Name))
		}
		fmt.Fprintln(w)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nmetadata: %d\n", len(c.Metadata))
	for _, m := range c.Metadata {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", command.PlainText(m.Key), m.Type, m.text)
	}
	t.Flush()
	if len(c.Tensors) > 0 {
		fmt.Fprintf(t, "\ntensors: %d (shapes are outermost first: a matrix is out × in)\n", c.count)
		for _, e := range c.Tensors {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", command.PlainText(e.Name), command.PlainText(e.Type), shapeText(e.Shape),
				command.Size(e.Bytes))
		}
		t.Flush()
	}
	fmt.Fprintf(t, "\ntotal: %s, %s parameters\n", several(c.count, "tensor"), command.Count(c.Parameters))
	for _, s := range c.Types {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", command.PlainText(s.Type), several(s.Tensors, "tensor"), command.Size(s.Bytes))
	}
	if err := t.Flush(); err != nil || c.Memory == nil {
		return err
	}
	return c.Memory.print(w)
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " × "), "[]")
}

// several returns a number of things in words: 1 tensor, 2 tensors.
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
