package grove

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/engine"
)

// MemoryOptions say how much generated text is kept. Drafters that look at text, lookup and those with +text, draft
// from it: words that followed a phrase before often follow it again.
type MemoryOptions struct {
	Dir    string // folder; empty: texts are kept only in memory
	Tokens int    // newest tokens to keep for each tenant, and 16 times as many for all together; 0: 10 million, about 80 MB
}

// mostMemories bounds how many tenants' texts are open. To open another's, the least recently used
// are closed: their texts stay in the folder, but without a folder they are lost.
const mostMemories = 16

// mostFolders bounds how many tenants have a folder.
const mostFolders = 1000

// retryTime is the time before a folder that failed, for example for too many open files, is tried again.
const retryTime = time.Minute

// memories holds earlier texts, by tenant.
type memories struct {
	o MemoryOptions

	mu   sync.Mutex
	open map[string]*memoryUse // nil: the model is closed
	uses int
}

// memoryUse is a store, and how many generations draft from it.
type memoryUse struct {
	*textstore.Store
	failed      error     // why it has no folder, and is only in memory
	tried       time.Time // when opening it was tried
	users, last int
	logged      atomic.Bool // its folder's failure
}

// add keeps a text. If the folder fails, as on a full disk, it logs that once, until the folder takes texts again.
func (u *memoryUse) add(context, tokens []int32) {
	err := u.Add(context, tokens)
	if before := u.logged.Swap(err != nil); err != nil && !before {
		slog.Error("cannot keep texts in files: free disk space, or check the folder", "error", err)
	}
}

// memoryFolder returns the folder of a tenant, for texts in this model's tokens.
func (m *Model) memoryFolder(tenant string) string {
	if m.memories.o.Dir == "" {
		return ""
	}
	vocabulary := cmp.Or(shortlist.Fingerprint(m.m.Tokenizer), "tokens")
	return filepath.Join(m.memories.o.Dir, vocabulary, tenantFolder(tenant))
}

// tenantFolder is the name of a tenant's folder.
func tenantFolder(tenant string) string {
	if tenant == "" {
		return "everyone"
	}
	sum := sha256.Sum256([]byte(tenant))
	return "tenant-" + hex.EncodeToString(sum[:16])
}

// remembered returns the texts of a tenant, in use until leave is called, or nil if the model keeps
// none. A folder that fails, as on a full disk, does not fail the generation.
func (m *Model) remembered(tenant string) (s *memoryUse, leave func(), err error) {
	r := m.memories
	if r == nil {
		return nil, func() {}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return nil, nil, engine.ErrClosed
	}
	u := r.open[tenant]
	if u == nil || u.failed != nil && u.users == 0 && time.Since(u.tried) > retryTime {
		before := u
		if before == nil { // else the new one takes its place
			if err := r.closeIdle(); err != nil {
				slog.Error("memory: cannot keep the texts of a tenant", "error", err)
			}
		}
		u = &memoryUse{tried: time.Now()}
		u.Store, u.failed = m.openMemory(tenant)
		if u.failed != nil && before != nil {
			u.Store = before.Store
		} else if u.failed != nil {
			slog.Error("memory: a tenant's texts are kept only in memory", "error", u.failed)
			u.Store, _ = textstore.Open("", r.o.Tokens) // without a folder nothing fails
		}
		r.open[tenant] = u
	}
	u.users++
	r.uses++
	u.last = r.uses
	return u, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		u.users--
	}, nil
}

// openMemory opens the texts of a tenant. For a new tenant it may have to remove other tenants' folders.
func (m *Model) openMemory(tenant string) (*textstore.Store, error) {
	folder := m.memoryFolder(tenant)
	if folder != "" {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			if err := m.dropOldest(filepath.Dir(folder)); err != nil {
				return nil, err
			}
		}
	}
	return textstore.Open(folder, m.memories.o.Tokens)
}

// dropOldest removes folders of tenants whose texts are not open, those not written to for longest first,
// until the rest are within the limit for mostMemories tenants, and there is room for one more of mostFolders.
func (m *Model) dropOldest(dir string) error {
	type folder struct {
		path    string
		size    float64
		written time.Time
	}
	open := map[string]bool{}
	for tenant := range m.memories.open {
		open[filepath.Join(dir, tenantFolder(tenant))] = true
	}
	tenants, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var list []folder
	number := 0
	room := mostMemories * textstore.TokenBytes * float64(cmp.Or(m.memories.o.Tokens, textstore.DefaultTokens))
	for _, tenant := range tenants {
		path := filepath.Join(dir, tenant.Name())
		if !strings.HasPrefix(tenant.Name(), "tenant-") {
			continue
		}
		files, err := os.ReadDir(path)
		if err != nil {
			continue // it fails for its tenant alone
		}
		number++
		f := folder{path: path}
		for _, file := range files {
			if info, err := file.Info(); err == nil { // otherwise it was removed
				f.size += float64(info.Size())
				f.written = slices.MaxFunc([]time.Time{f.written, info.ModTime()}, time.Time.Compare)
			}
		}
		room -= f.size
		if !open[path] {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b folder) int { return a.written.Compare(b.written) })
	for _, f := range list {
		if room >= 0 && number < mostFolders {
			break
		}
		if err := os.RemoveAll(f.path); err != nil {
			return err
		}
		room += f.size
		number--
	}
	return nil
}

// closeIdle makes room for another store. It closes several if more than the limit were in use.
func (r *memories) closeIdle() (err error) {
	for len(r.open) >= mostMemories {
		oldest := ""
		for tenant, u := range r.open {
			if u.users == 0 && (r.open[oldest] == nil || r.open[oldest].users > 0 || u.last < r.open[oldest].last) {
				oldest = tenant
			}
		}
		u := r.open[oldest]
		if u == nil || u.users > 0 {
			break // all are in use
		}
		delete(r.open, oldest)
		err = errors.Join(err, u.Close())
	}
	return err
}

// close closes all stores.
func (r *memories) close() (err error) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.open {
		err = errors.Join(err, u.Close())
	}
	r.open = nil
	return err
}

// Remember adds a text, such as a document that requests will be about, to a tenant's texts that
// drafters draft from. The model must have been opened with Options.Memory.
func (m *Model) Remember(tenant, text string) error {
	if m.memories == nil {
		return optionf("Memory", "the model keeps no texts: open it with Options.Memory")
	}
	tokens, err := m.Tokenize(text)
	if err != nil {
		return err
	}
	s, leave, err := m.remembered(tenant)
	if err != nil {
		return err
	}
	defer leave()
	return errors.Join(s.failed, s.Add(nil, tokens))
}
