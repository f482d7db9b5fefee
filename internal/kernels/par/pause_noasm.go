//go:build !(amd64 || arm64) || purego

package par

// pause passes a little time. The call itself is what does it.
//
//go:noinline
func pause() {}
