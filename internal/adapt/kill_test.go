package adapt_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/sample"
)

// A process that learns and saves is killed at random moments. Each time the state is whole, one of
// those that it saved, and can be used at once. No temporary file is left.
func TestKilled(t *testing.T) {
	const variable = "ADAPT_TEST_DIR"
	m := drafttest.OpenTarget(t, 512)
	open := func(dir string) *adapt.Adapter {
		o := adapt.Options{Policy: adapt.Always, Tuning: wild(), Wait: true, Dir: dir}
		return drafttest.Must(adapt.New(newLearner(t, m, 1).Head(), drafttest.Vocab, o))(t)
	}
	describe := func(a *adapt.Adapter) string {
		return fmt.Sprint("state ", a.Stats().Queries, " ", adapt.Fingerprint(a.Head()))
	}
	if dir := os.Getenv(variable); dir != "" { // the process
		a := open(dir)
		a.BeforeWrites(func() error {
			_, err := fmt.Println(describe(a))
			return err
		})
		s := serve(t, m, a.Wrap(newLearner(t, m, 1)))
		rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
		for range 10000 { // it is killed long before
			s.query(traffic(rng, attack), sample.Params{}, 12)
			if err := a.Save(); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	dir, temp := t.TempDir(), t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var written []string
	for kill := range 8 {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), variable+"="+dir, "TMPDIR="+temp)
		out, err := c.StdoutPipe()
		if err = errors.Join(err, c.Start()); err != nil {
			t.Fatal(err)
		}
		lines, saves := bufio.NewScanner(out), 1+rng.IntN(12)
		for lines.Scan() {
			written = append(written, lines.Text())
			saves--
			if saves < 0 {
				break
			}
		}
		if saves >= 0 {
			t.Fatalf("the process ended by itself: %q", written)
		}
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond) // any moment of a save, or after it
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			written = append(written, lines.Text())
		}
		_ = c.Wait()
		a := open(dir)
		got := describe(a)
		if !slices.Contains(written, got) {
			t.Fatalf("kill %d: %q was not saved; the process saved %q", kill, got, written)
		}
		files := drafttest.Must(os.ReadDir(dir))(t)
		for _, f := range files {
			if strings.Contains(f.Name(), ".tmp-") {
				t.Errorf("kill %d left %s", kill, f.Name())
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		written = []string{got}
	}
}
