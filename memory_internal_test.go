package grove

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/models"
)

// However many tenants there are, few have their texts open, with or without a folder; those in use stay open.
func TestMemoriesAreFew(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, dir := range []string{"", t.TempDir()} {
		m.memories = &memories{o: MemoryOptions{Dir: dir}, open: map[string]*memoryUse{}}
		used, leave, err := m.remembered("in use")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 * mostMemories {
			if err := m.Remember(fmt.Sprint(i), "one two three four"); err != nil {
				t.Fatal(err)
			}
			if n := len(m.memories.open); n > mostMemories {
				t.Fatalf("%d tenants' texts are open, with folder %q", n, dir)
			}
		}
		if m.memories.open["in use"] != used {
			t.Error("texts in use were closed")
		}
		leave()
		var together []func()
		for i := range 2 * mostMemories {
			_, leave, err := m.remembered(fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			together = append(together, leave)
		}
		for _, leave := range together {
			leave()
		}
		if err := m.Remember("the next", "one two three four"); err != nil || len(m.memories.open) > mostMemories {
			t.Errorf("%d tenants' texts are open when those of many were in use, with folder %q: %v",
				len(m.memories.open), dir, err)
		}
		if err := m.memories.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If a tenant's folder fails after the model was opened, generations continue, and draft from texts
// in memory; whoever adds a text gets the error.
func TestMemoryFolderFails(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1, Memory: &MemoryOptions{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	folder := m.memoryFolder("a")
	if err := os.WriteFile(folder, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := Collect(m.Generate(context.Background(), "Once upon a time", Request{MaxTokens: 20, Tenant: "a"}))
		if err != nil || len(r.Tokens) != 20 {
			t.Fatalf("%v, %v: want 20 tokens", r, err)
		}
	}
	u := m.memories.open["a"]
	if err := u.Wait(); err != nil || u.Tokens() == 0 {
		t.Errorf("the texts are not in memory: %v", err)
	}
	if err := m.Remember("a", "one two three"); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a text that is not kept: %v", err)
	}
	had := u.Tokens()
	for i := range mostMemories { // as many as are open at once, all used later than it
		if err := m.Remember(fmt.Sprint(i), "four five six"); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			m.memories.open["a"].last = math.MaxInt
		}
	}
	u = m.memories.open["a"]
	u.last, u.tried = 0, time.Now().Add(-2*retryTime)
	if err := m.Remember("a", "seven eight nine"); err == nil || strings.Contains(err.Error(), "closed") {
		t.Errorf("a text that is kept in memory alone: %v", err)
	}
	u = m.memories.open["a"]
	if err := u.Wait(); err != nil || u.Tokens() <= had {
		t.Errorf("%d texts' tokens are in memory, %d before: %v", u.Tokens(), had, err)
	}
	if err := os.Remove(folder); err != nil { // the failure is over
		t.Fatal(err)
	}
	for _, tried := range []time.Duration{0, 2 * retryTime} {
		m.memories.open["a"].tried = time.Now().Add(-tried)
		err := m.Remember("a", "one two three")
		if _, missing := os.Stat(folder); (err == nil) != (tried > retryTime) || (missing == nil) != (err == nil) {
			t.Errorf("%v after it failed: %v, %v", tried, err, missing)
		}
	}
}

// The log says once that a folder takes no texts, as on a full disk, and again when it does so after it took some.
func TestMemoryFolderFailsLater(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	store := func() *textstore.Store {
		s, err := textstore.Open(t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good, bad := store(), store()
	if err := bad.Close(); err != nil { // it then refuses texts, as if there were no room
		t.Fatal(err)
	}
	u := &memoryUse{}
	for i, s := range []*textstore.Store{good, bad, bad, good, bad} {
		u.Store = s
		u.add(nil, []int32{1, 2, 3})
		if n, want := strings.Count(log.String(), "cannot keep texts in files"), []int{0, 1, 1, 1, 2}[i]; n != want {
			t.Errorf("after %d texts the log has %d lines, want %d:\n%s", i+1, n, want, &log)
		}
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
}

// All tenants' folders together stay within the limit for mostMemories of them; those not written to for longest go
// first.
func TestMemoryFoldersAreBounded(t *testing.T) {
	const tokens, tenants = 400, 6 * mostMemories
	dir := filepath.Join(t.TempDir(), "m[a") // no pattern
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1, Memory: &MemoryOptions{Dir: dir, Tokens: tokens}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i := range tenants {
		for n := range 8 {
			if err := m.Remember(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i*n, " two three. "), 6)); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.Close() // else files that are being joined go while they are counted
	size := int64(0)
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if most := int64((mostMemories + 2) * tokens * 8); size > most || size < most/4 {
		t.Errorf("%d bytes of texts: want up to %d", size, most)
	}
	for i, want := range map[int]bool{0: false, tenants - 1: true} {
		if _, err := os.Stat(m.memoryFolder(fmt.Sprint(i))); (err == nil) != want {
			t.Errorf("tenant %d's folder: %v; %d bytes", i, err, size)
		}
	}
}

// However little they have, few tenants have a folder.
func TestMemoryFoldersAreFew(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1, Memory: &MemoryOptions{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dir := filepath.Dir(m.memoryFolder("a"))
	for i := range mostFolders + 20 {
		if err := os.Mkdir(m.memoryFolder(fmt.Sprint(i)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Remember("a", "one two three"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > mostFolders+1 { // and everyone's
		t.Errorf("%d folders, %v: want %d", len(left), err, mostFolders+1)
	}
}
