package filelock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/files/filelock"
)

// One holds the lock at a time. Who asks for it meanwhile learns who that is.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 3 {
		l, err := filelock.Take(path)
		if err != nil {
			t.Fatal(err)
		}
		var held *filelock.HeldError
		_, err = filelock.Take(path)
		if !errors.As(err, &held) || *held != (filelock.HeldError{path, os.Getpid()}) || held.Holder() != "this process" {
			t.Errorf("a second lock: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := filelock.Take(filepath.Join(path, "none")); err == nil {
		t.Error("there is a lock in no folder")
	}
}

// A killed process leaves no lock.
func TestKilled(t *testing.T) {
	const variable = "FILELOCK_TEST_PATH"
	if path := os.Getenv(variable); path != "" { // the process
		_, err := filelock.Take(path)
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
	}
	path := filepath.Join(t.TempDir(), "lock")
	for range 3 {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), variable+"="+path)
		out, err := c.StdoutPipe()
		_, in := c.StdinPipe()
		if err := errors.Join(err, in); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
			t.Errorf("the process could not lock it: %q, %v", line, err)
		}
		var held *filelock.HeldError
		if _, err := filelock.Take(path); !errors.As(err, &held) || held.PID != c.Process.Pid {
			t.Errorf("while process %d holds it: %v", c.Process.Pid, err)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		l, err := filelock.Take(path)
		if err != nil {
			t.Fatalf("after the process was killed: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}
