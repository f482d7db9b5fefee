package fileerr_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/fileerr"
)

// An error gives format, file, field, fault and remedy, in this order, and omits those that it lacks.
func TestError(t *testing.T) {
	e := &fileerr.Error{Format: "gguf", File: "m.gguf", Field: `tensor "x"`, Err: errors.New("too short"),
		Remedy: "convert it"}
	if s := e.Error(); s != `gguf: m.gguf: tensor "x": too short: convert it` {
		t.Error(s)
	}
	e.Field = ""
	if s := e.Error(); s != `gguf: m.gguf: too short: convert it` {
		t.Error(s)
	}
}

// The error of a missing file names it once, and errors.Is still recognizes it.
func TestOpening(t *testing.T) {
	_, err := os.Open("absent.gguf")
	e := fileerr.Opening("gguf", "absent.gguf", err)
	if !errors.Is(e, fs.ErrNotExist) || strings.Count(e.Error(), "absent.gguf") != 1 || e.Remedy == "" {
		t.Error(e)
	}
}

// A name of any length and content is short and printable in a message.
func TestQuote(t *testing.T) {
	if s := fileerr.Quote("a\nb" + strings.Repeat("x", 200)); len(s) > 110 || strings.Contains(s, "\n") {
		t.Error(s)
	}
}
