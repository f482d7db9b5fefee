package command

import (
	"os"

	"golang.org/x/sys/windows"
)

// obeyEscapes makes a console interpret escape sequences for colours and the cursor: by default
// they are printed.
func obeyEscapes(f *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil {
		_ = windows.SetConsoleMode(windows.Handle(f.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}
