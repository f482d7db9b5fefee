package gguf_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// Write a file, and read it back.
func Example() {
	dir, err := os.MkdirTemp("", "gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tiny.gguf")

	norm, err := tensor.FromFloat32s("output_norm.weight", tensor.BF16, []int{4}, []float32{1, 2, 3, 0.5})
	if err != nil {
		log.Fatal(err)
	}
	w := new(gguf.Writer)
	w.Set("general.architecture", "qwen3")
	w.Set("qwen3.block_count", uint32(28))
	w.AddTensor(norm)
	if err := w.WriteFile(path); err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for key, value := range f.Meta() {
		fmt.Println(key, value.Type(), value)
	}
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t.Type, t.Shape, t.Size, "bytes")
	}

	layers, ok := gguf.Get[uint64](f, "qwen3.block_count") // false where the key is missing, or no such number
	x, err := f.Load("output_norm.weight")
	if err != nil {
		log.Fatal(err)
	}
	values, err := x.Float32s()
	fmt.Println(layers, ok, values, err)

	// Output:
	// general.architecture str "qwen3"
	// qwen3.block_count u32 28
	// output_norm.weight BF16 [4] 8 bytes
	// 28 true [1 2 3 0.5] <nil>
}
