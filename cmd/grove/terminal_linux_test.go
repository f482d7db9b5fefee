package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/grovellm/grove/internal/command"
)

// pty is a program on a terminal of its own.
type pty struct {
	cmd    *exec.Cmd
	master *os.File

	mu  sync.Mutex
	out bytes.Buffer
}

// onTerminal starts the command on a terminal of that many columns and lines.
func onTerminal(t *testing.T, columns, rows int, args ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer slave.Close()
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	p := &pty{cmd: exec.Command(os.Args[0], args...), master: master}
	p.cmd.Env = append(os.Environ(), asCommand+"=1", "TERM=xterm")
	p.cmd.Stdin = slave
	p.cmd.Stdout = slave
	p.cmd.Stderr = slave
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			p.mu.Lock()
			p.out.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pty) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await waits until the screen has shown a text.
func (p *pty) await(t *testing.T, text string) {
	t.Helper()
	for range 1200 {
		if strings.Contains(p.screen(), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the terminal never shows %q:\n%q", text, p.screen())
}

func (p *pty) send(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// status waits for the end.
func (p *pty) status() int {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// On a terminal grove run without a prompt opens a chat; Ctrl-D leaves it.
func TestRunOpensChat(t *testing.T) {
	p := onTerminal(t, 80, 24, "run", "-m", tiny(t), "-n", "5", "-t", "0")
	p.await(t, "/help lists commands")
	p.await(t, "> ")
	p.send(t, "hello\r")
	for range 100 {
		if strings.Count(p.screen(), "> ") > 1 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.send(t, "\x04")
	if code := p.status(); code != command.ExitOK {
		t.Errorf("status %d:\n%q", code, p.screen())
	}
}

// Where a chat does not know a flag of run's, run says what is missing, and the flags of all commands count.
func TestRunWithItsOwnFlags(t *testing.T) {
	p := onTerminal(t, 80, 24, "run", "-m", tiny(t), "--show", "tree")
	p.await(t, "there is no prompt")
	p = onTerminal(t, 80, 24, "run", "-m", tiny(t), "--show", "tree", "--threads", "2000")
	p.await(t, "--threads 2000")
}

// The first chat without a model offers to fetch one, the next chat is with it, and without the
// hub, or after a no, grove's small model stands in.
func TestFirstChat(t *testing.T) {
	gguf, err := os.ReadFile(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	fakeHub(t, map[string]map[string]string{firstModel.Repo: {"SmolLM2-135M-Instruct-Q8_0.gguf": string(gguf)}}, "qwen3", 0)
	t.Setenv("GROVE_MODEL", "")
	const own = "grove target, context"
	chat := func(answer string, shown ...string) string {
		t.Helper()
		p := onTerminal(t, 200, 24, "chat", "-n", "5", "-t", "0")
		if answer != "" {
			p.await(t, "[Y/n] ")
			p.send(t, answer)
		}
		for _, text := range append(shown, "/help lists commands", "> ") {
			p.await(t, text)
		}
		p.send(t, "\x04")
		if code := p.status(); code != command.ExitOK {
			t.Errorf("status %d:\n%q", code, p.screen())
		}
		return p.screen()
	}
	chat("n\r", "no assistant", own)
	size := command.Size(int64(len(gguf)))
	for _, screen := range []string{chat("\r", size, firstLicence, os.Getenv("HF_ENDPOINT")), chat("", "was fetched before")} {
		if strings.Contains(screen, own) {
			t.Errorf("the chat is with grove's small model:\n%q", screen)
		}
	}
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_HUB_OFFLINE", "1")
	chat("", "no assistant", "HF_HUB_OFFLINE is set", own)
}

// SIGTERM ends a chat that waits for a line, and the terminal is as before.
func TestTerminateChat(t *testing.T) {
	p := onTerminal(t, 80, 24, "chat", "-m", tiny(t), "-n", "5", "-t", "0")
	p.await(t, "/help lists commands")
	p.await(t, "> ")
	kill := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	if code := p.status(); code != command.ExitInterrupted {
		t.Fatalf("status %d:\n%q", code, p.screen())
	}
	p.await(t, "interrupted")
	mode, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if mode.Lflag&unix.ECHO == 0 || !strings.Contains(p.screen(), "\x1b[?2004l") {
		t.Errorf("the terminal is left raw:\n%q", p.screen())
	}
}

// On a terminal the demo draws both texts while they come. Ctrl-C ends it with status 130, and the
// cursor comes back.
func TestDemoOnTerminal(t *testing.T) {
	model := tiny(t)
	for _, columns := range []int{120, 60} {
		p := onTerminal(t, columns, 20, "demo", "-m", model, "-d", "lookup", "-n", "60", "one two one two")
		p.await(t, "× the speed")
		if code := p.status(); code != command.ExitOK {
			t.Errorf("status %d:\n%q", code, p.screen())
		}
		screen := p.screen()
		if strings.Contains(screen, " │ ") != (columns == 120) || cursorHidden(screen) {
			t.Errorf("%d columns:\n%q", columns, screen)
		}
	}
	p := onTerminal(t, 100, 20, "demo", "-m", tiny(t, 1<<17), "--pad", "200M", "-d", "lookup", "-n", "100000",
		"one two one two") // for seconds
	p.await(t, "tokens/s")
	p.send(t, "\x03")
	p.await(t, "interrupted")
	if code := p.status(); code != command.ExitInterrupted || cursorHidden(p.screen()) {
		t.Errorf("after Ctrl-C status %d:\n%q", code, p.screen())
	}
}

// cursorHidden reports whether the last of a terminal's output leaves the cursor hidden.
func cursorHidden(screen string) bool {
	return strings.LastIndex(screen, "\x1b[?25h") < strings.LastIndex(screen, "\x1b[?25l")
}
