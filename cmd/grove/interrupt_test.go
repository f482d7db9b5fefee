package main

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/command"
)

// Ctrl-C ends a generation with status 130, its text on a line of its own.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted there")
	}
	cmd := exec.Command(os.Args[0], "run", "-m", tiny(t, 1<<17), // never full in a test
		"-n", "0", "-d", "plain", "--ignore-end", "--json", "x")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out := &watched{at: 3, then: func() { _ = cmd.Process.Signal(os.Interrupt) }}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != command.ExitInterrupted {
		t.Errorf("%v, %s", err, stderr.String())
	}
	if !strings.HasSuffix(out.String(), "\n") || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("output ends %q; messages: %q", out.String(), stderr.String())
	}
}

// SIGTERM ends a command that waits for its input.
func TestTerminate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be terminated there")
	}
	cmd := exec.Command(os.Args[0], "run", "-m", tiny(t), "-n", "1")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	if _, err := cmd.StdinPipe(); err != nil { // open, and empty
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	time.Sleep(time.Second) // it waits by then
	for range 100 {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-end:
			if err == nil {
				t.Error("the status is that of success")
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	t.Error("SIGTERM does not end it")
}

// watched calls then at the at-th line.
type watched struct {
	b    bytes.Buffer // not embedded: its ReadFrom would go past Write
	at   int
	then func()
}

func (w *watched) String() string { return w.b.String() }

func (w *watched) Write(p []byte) (int, error) {
	if n := bytes.Count(p, []byte("\n")); w.at > 0 {
		w.at -= n
		if w.at <= 0 {
			w.then()
		}
	}
	return w.b.Write(p)
}
