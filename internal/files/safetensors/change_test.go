package safetensors

import "github.com/grovellm/grove/internal/files/infile"

// parse parses a file in memory.
func parse(data []byte) (*header, error) { return parseFile(infile.OpenMemory("", data)) }
