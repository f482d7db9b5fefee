package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

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

// onTerminal starts grove on a terminal of that many columns and lines.
func onTerminal(t *testing.T, columns, rows int, args ...string) *pty {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "TERM=xterm")
	return anyOnTerminal(t, columns, rows, cmd)
}

// anyOnTerminal starts any command on a terminal.
func anyOnTerminal(t *testing.T, columns, rows int, cmd *exec.Cmd) *pty {
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
	p := &pty{cmd: cmd, master: master}
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
	p.await(t, "\x1b[?2004l\r\n") // the shell's next output begins a line
	if code := p.status(); code != command.ExitOK {
		t.Errorf("status %d:\n%q", code, p.screen())
	}
}

// Ctrl-C at the prompt clears the line and keeps the chat, as an answer may have ended just before; twice it leaves.
func TestInterruptAtPrompt(t *testing.T) {
	const hint = "Press Ctrl-C again, or Ctrl-D, to leave."
	p := onTerminal(t, 80, 24, "chat", "-m", tiny(t), "-n", "5", "-t", "0")
	p.await(t, "> ")
	p.send(t, "\x1b[200~left\rout\x1b[201~ too\x1b[D\x1b[D\x03")
	p.await(t, hint)
	p.send(t, "kept\r/undo\r")
	p.await(t, "removed: kept")
	for range 600 { // before its prompt the chat does not read keys, and Ctrl-C is a signal
		if strings.HasSuffix(p.screen(), "> ") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.send(t, "\x03\x03")
	if code := p.status(); code != command.ExitOK {
		t.Errorf("status %d:\n%q", code, p.screen())
	}
	for range 100 {
		if strings.Count(p.screen(), hint) == 2 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("the hint is not there twice:\n%q", p.screen())
}

// A text of several lines that is pasted after a question is one turn with it, however its lines
// end and whatever is typed after it.
func TestPasteIntoChat(t *testing.T) {
	p := onTerminal(t, 80, 24, "chat", "-m", tiny(t), "-n", "5", "-t", "0")
	p.await(t, "> ")
	for i, text := range []string{"What is \x1b[200~A\rsecond\x1b[201~?", "\x1b[200~B\r\nsecond\nthird\n\x1b[201~",
		"What is \x1b[200~C\x1b[201~ and \x1b[200~D\rsecond\x1b[201~"} {
		p.send(t, text+"\r/undo\r/again\r/undo\r")
		p.await(t, []string{"removed: What is A …", "removed: B …", "removed: What is C and D …"}[i])
		for range 600 {
			if strings.Count(p.screen(), "there is no turn to remove") > i {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if strings.Count(p.screen(), "there is nothing to answer yet") != 3 {
		t.Errorf("a pasted text is more than one turn:\n%q", p.screen())
	}
}

// bash completes the names of files with spaces, quoted or not.
func TestBashCompletesSpaces(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.MkdirAll(filepath.Join(dir, "my models", "small"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(must(t, "", "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "--norc", "-i")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=dumb", "PS1=$ ", "HOME="+dir)
	p := anyOnTerminal(t, 200, 24, cmd)
	p.send(t, "source ./script; grove() { [[ $1 == __complete ]] || echo \"<$2>\"; }\r")
	for typed, want := range map[string]string{
		"my\tsm\t": "<my models/small/>", "\"my models/s\t.\r": "<my models/small/.>",
		"--model=my\tsm\t": "<--model=my models/small/>",
	} {
		p.send(t, "grove run "+typed+"\r")
		p.await(t, want)
	}
	p.send(t, "exit\r")
}

// If a chat does not know a flag of run's, run says what is missing, and the flags of all commands count.
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
	for _, key := range []string{"\x03", "\x04"} { // which leave a chat
		p := onTerminal(t, 200, 24, "chat")
		p.await(t, "[Y/n] ")
		p.send(t, key)
		p.await(t, "\x1b[?2004l\r\n")
		if code := p.status(); code != command.ExitOK || strings.Contains(p.screen(), "EOF") {
			t.Errorf("status %d:\n%q", code, p.screen())
		}
	}
	chat("n\r", "not an assistant", own)
	size := command.Size(int64(len(gguf)))
	for _, screen := range []string{chat("\r", size, firstLicence, os.Getenv("HF_ENDPOINT")), chat("", "was fetched before")} {
		if strings.Contains(screen, own) {
			t.Errorf("the chat is with grove's small model:\n%q", screen)
		}
	}
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_HUB_OFFLINE", "1")
	chat("", "not an assistant", "HF_HUB_OFFLINE is set", own)
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
	p := onTerminal(t, 100, 20, "demo", "-m", tiny(t, 1<<17), "--pad", "40M", "-d", "lookup", "-n", "100000",
		"one two one two") // for seconds
	p.await(t, "tokens/s")
	p.send(t, "\x03")
	p.await(t, "interrupted")
	if code := p.status(); code != command.ExitInterrupted || cursorHidden(p.screen()) {
		t.Errorf("after Ctrl-C status %d:\n%q", code, p.screen())
	}
}

// A bar of progress stays on its line of a narrow terminal, or it would be there again and again.
func TestProgressOnNarrowTerminal(t *testing.T) {
	model, err := os.ReadFile(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	fakeHub(t, map[string]map[string]string{"org/model": {"a-model-with-a-long-name-Q8_0.gguf": string(model)}}, "qwen3",
		500*time.Millisecond)
	p := onTerminal(t, 30, 20, "pull", "org/model")
	p.await(t, "|")
	p.send(t, "\x03")
	p.status()
	for part := range strings.FieldsFuncSeq(p.screen(), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if strings.Contains(part, "|") && utf8.RuneCountInString(part) > 30 {
			t.Fatalf("a line of more than 30 columns: %q", part)
		}
	}
}

// What a model's file says of itself does not steer the terminal.
func TestModelNameOnTerminal(t *testing.T) {
	model := tiny(t)
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte("tiny-qwen3"), []byte("tiny\x1b[31m3"), 1)
	if err := os.WriteFile(model, data, 0o600); err != nil {
		t.Fatal(err)
	}
	p := onTerminal(t, 80, 24, "chat", "-m", model)
	p.await(t, `"tiny\x1b[31m3", context`)
	p.await(t, "/help lists commands")
	p.await(t, "> ")
	p.send(t, "\x04")
	p.status()
}

// cursorHidden reports whether the last of a terminal's output leaves the cursor hidden.
func cursorHidden(screen string) bool {
	return strings.LastIndex(screen, "\x1b[?25h") < strings.LastIndex(screen, "\x1b[?25l")
}
