//go:build !(amd64 || arm64) || purego

package par

// pause passes a little time. The call itself takes that time.
//
//go:noinline
func pause() {}
