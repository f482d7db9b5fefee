package command

import (
	"os"

	"golang.org/x/sys/windows"
)

// obeyEscapes has a console take escape sequences of colours and of the cursor for what they are: a program asks for
// that, or they are printed.
func obeyEscapes(f *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil {
		_ = windows.SetConsoleMode(windows.Handle(f.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}
