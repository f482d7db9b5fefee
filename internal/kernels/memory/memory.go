// Package memory says how much memory the program may use.
package memory

// Available is the memory in bytes that the program can take. On Linux that is what the machine has
// free or can free of its file cache, and no more than the container (control group) leaves of its limit;
// on macOS all memory; 0 elsewhere, which means not known.
func Available() int64 { return available() }
