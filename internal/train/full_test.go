//go:build linux

package train

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const fullEnv = "GROVE_TRAIN_FULL"

// TestDiskFull lets a child process train until files cannot grow any more (a limit on file sizes
// simulates a full disk: writes fail in the middle). The run ends with an error, and can continue
// from the checkpoint before.
func TestDiskFull(t *testing.T) {
	train, _, shape := tinySets(t)
	c := Config{Recipe: tinyRecipe(shape, 14), Threads: 1, SaveEvery: time.Nanosecond}
	if dir := os.Getenv(fullEnv); dir != "" { // this is the child
		c.Dir = dir
		c.Report = func(p Progress) {
			if p.Step == 5 {
				limit := syscall.Rlimit{Cur: 20_000, Max: 20_000}
				if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
					fmt.Println(err)
				}
			}
		}
		_, err := Run(context.Background(), c, train, nil)
		fmt.Println("error:", err)
		os.Exit(0)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
	cmd.Env = append(os.Environ(), fullEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "error: ") ||
		!strings.Contains(string(out), checkpointPath(dir, 5)) {
		t.Fatalf("%v: want an error that names the checkpoint\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, checkpointPrefix+"*"))
	if err != nil || len(found) != 2 || found[1] != checkpointPath(dir, 4) {
		t.Errorf("left are %v (%v): want the checkpoints of steps 3 and 4, and no part of another", found, err)
	}
	c.Dir = dir
	goesOn(t, c, train)
}
