// Package memory says how much memory the program may use.
package memory

// Available is the memory in bytes that the program can take: what the machine has free, or can free of its file cache, and no more than the limit of
// the container (control group) that it runs in; 0 where the system does not say.
func Available() int64 { return available() }
