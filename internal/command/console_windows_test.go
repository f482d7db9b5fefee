package command

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// A console that prints escape sequences, as of cmd.exe, obeys them once a command runs.
func TestConsole(t *testing.T) {
	console, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no console:", err)
	}
	defer console.Close()
	h := windows.Handle(console.Fd())
	var before, after uint32
	if err := windows.GetConsoleMode(h, &before); err != nil {
		t.Fatal(err)
	}
	defer windows.SetConsoleMode(h, before)
	if err := windows.SetConsoleMode(h, before&^windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		t.Fatal(err)
	}
	a := &App{Name: "test", Commands: func() CommandLine {
		var c struct {
			Globals
			Version VersionCmd `cmd:""`
		}
		return CommandLine{Grammar: &c, Globals: &c.Globals}
	}}
	p := NewProgram(a, context.Background(), strings.NewReader(""), console, io.Discard)
	if status := p.Main([]string{"version"}); status != 0 {
		t.Fatal("status", status)
	}
	if err := windows.GetConsoleMode(h, &after); err != nil {
		t.Fatal(err)
	}
	if after != before|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING {
		t.Errorf("its mode is %#x, was %#x", after, before)
	}
}
