package gguf

import "github.com/grovellm/grove/internal/files/infile"

// parse parses a file in memory.
func parse(data []byte) (*header, error) {
	f := infile.OpenMemory("", data)
	return (&cursor{file: f, size: f.Size()}).parse()
}
