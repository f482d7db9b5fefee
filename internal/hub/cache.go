// What the cache has.

package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/filelock"
)

// snapshots lists a repository's snapshot folders: that of branch main, then the others, the newest first.
func (c *Client) snapshots(repo string) []string {
	dir := filepath.Join(c.folder(repo), "snapshots")
	entries, _ := os.ReadDir(dir) // none where there is no folder
	main, _ := os.ReadFile(filepath.Join(c.folder(repo), "refs", "main"))
	type snapshot struct {
		path string
		main bool
		time time.Time
	}
	var list []snapshot
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			list = append(list, snapshot{filepath.Join(dir, e.Name()), e.Name() == strings.TrimSpace(string(main)), info.ModTime()})
		}
	}
	slices.SortStableFunc(list, func(a, b snapshot) int {
		if a.main != b.main {
			return map[bool]int{true: -1, false: 1}[a.main]
		}
		return b.time.Compare(a.time)
	})
	var paths []string
	for _, s := range list {
		paths = append(paths, s.path)
	}
	return paths
}

// filesIn lists the files of a snapshot whose contents are there.
func filesIn(snapshot string) (files []File, err error) {
	err = filepath.WalkDir(snapshot, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			rel, _ := filepath.Rel(snapshot, p)
			files = append(files, File{Path: filepath.ToSlash(rel), Size: info.Size()})
		}
		return nil
	})
	return files, err
}

// Find returns the path of a model in the cache: a file, or a folder. The error is ErrNotCached where there is none.
func (c *Client) Find(n Name) (string, error) {
	var first error
	for _, s := range c.snapshots(n.Repo) {
		files, err := filesIn(s)
		if err != nil {
			return "", err
		}
		m, err := Choose(files, n.What)
		if err == nil {
			for _, f := range m.Files {
				_ = os.Chtimes(filepath.Join(s, filepath.FromSlash(f.Path)), time.Now(), time.Time{}) // for List; others' files may refuse
			}
			return filepath.Join(s, filepath.FromSlash(m.Path)), nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return "", ErrNotCached
	}
	return "", fmt.Errorf("%w: %w", ErrNotCached, first)
}

// Entry is a model in the cache.
type Entry struct {
	Repo  string    `json:"repository"`
	File  string    `json:"file"` // "." for the folder
	Type  string    `json:"type"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"`
	Path  string    `json:"path"`
	State string    `json:"state,omitempty"` // what is wrong: parts are missing
}

// Entries lists the models in the cache, by repository and file.
func (c *Client) Entries() (list []Entry, err error) {
	folders, err := os.ReadDir(c.Cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range folders {
		name, ok := strings.CutPrefix(f.Name(), "models--")
		if !ok || !f.IsDir() {
			continue
		}
		repo := strings.ReplaceAll(name, "--", "/")
		seen := map[string]bool{}
		for _, s := range c.snapshots(repo) {
			files, err := filesIn(s)
			if err != nil {
				return nil, err
			}
			for _, m := range Models(files) {
				if !seen[m.Path] {
					seen[m.Path] = true
					list = append(list, entry(repo, s, &m))
				}
			}
		}
		blobs, _ := os.ReadDir(filepath.Join(c.folder(repo), "blobs"))
		for _, b := range blobs {
			if info, err := b.Info(); err == nil && strings.HasSuffix(b.Name(), incomplete) {
				list = append(list, Entry{Repo: repo, Bytes: info.Size(), Used: info.ModTime(), State: "incomplete",
					Path: filepath.Join(c.folder(repo), "blobs", b.Name())})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(a.Repo, b.Repo) })
	return list, err
}

func entry(repo, snapshot string, m *Model) Entry {
	e := Entry{Repo: repo, File: m.Path, Type: m.Type, Bytes: m.Bytes(), Path: filepath.Join(snapshot, filepath.FromSlash(m.Path))}
	if m.Whole() != nil {
		e.State = "incomplete"
	}
	for _, f := range m.Files {
		if t := accessTime(filepath.Join(snapshot, filepath.FromSlash(f.Path))); t.After(e.Used) {
			e.Used = t
		}
	}
	return e
}

// Remove removes a model from the cache, or with no file named the whole repository, and returns the bytes that this frees. A
// content that another file shows stays. The error is ErrNotCached where there is nothing to remove.
func (c *Client) Remove(n Name) (freed int64, err error) {
	dir := c.folder(n.Repo)
	if _, err := os.Stat(dir); err != nil {
		return 0, ErrNotCached
	}
	if n.What == "" {
		return c.removeAll(n.Repo)
	}
	var first error
	found := false
	for _, s := range c.snapshots(n.Repo) {
		files, err := filesIn(s)
		if err != nil {
			return freed, err
		}
		m, err := find(files, n.What)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		found = true
		for _, f := range m.Files {
			if f.Path == Manifest {
				continue
			}
			p := filepath.Join(s, filepath.FromSlash(f.Path))
			if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
				freed += info.Size()
			}
			if err := os.Remove(p); err != nil {
				return freed, err
			}
		}
	}
	if !found {
		return 0, fmt.Errorf("%w: %w", ErrNotCached, first)
	}
	n2, err := c.sweep(n.Repo)
	freed += n2
	if err != nil {
		return freed, err
	}
	if list, err := os.ReadDir(filepath.Join(dir, "blobs")); err == nil && len(list) == 0 && !c.anyFile(n.Repo) {
		more, err := c.removeAll(n.Repo)
		return freed + more, err
	}
	return freed, nil
}

// find is Choose without asking whether grove runs the model.
func find(files []File, what string) (*Model, error) {
	for _, is := range matches {
		for _, m := range Models(files) {
			if is(&m, strings.ToLower(what)) {
				return &m, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no %s: want %s", what, options(Models(files)))
}

func (c *Client) anyFile(repo string) bool {
	for _, s := range c.snapshots(repo) {
		if files, err := filesIn(s); err != nil || len(files) > 0 {
			return true
		}
	}
	return false
}

// sweep removes the blobs that no file of a snapshot shows.
func (c *Client) sweep(repo string) (freed int64, err error) {
	dir := c.folder(repo)
	shown := map[string]bool{}
	err = filepath.WalkDir(filepath.Join(dir, "snapshots"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			shown[path.Base(filepath.ToSlash(to))] = true
			return err
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, b := range blobs {
		if shown[b.Name()] || strings.HasSuffix(b.Name(), incomplete) {
			continue
		}
		lock, held := c.take(repo, b.Name())
		if held != nil {
			continue // it is about to be shown
		}
		if info, err := b.Info(); err == nil {
			freed += info.Size()
		}
		err = errors.Join(err, os.Remove(filepath.Join(dir, "blobs", b.Name())), lock.Release())
	}
	return freed, err
}

// take takes the lock of a blob, or fails.
func (c *Client) take(repo, blob string) (*filelock.Lock, error) {
	hash, _, _ := strings.Cut(blob, ".")
	return filelock.Take(mkdir(c.lockPath(repo, hash)))
}

// removeAll removes a repository, unless a process is fetching from it.
func (c *Client) removeAll(repo string) (freed int64, err error) {
	dir := c.folder(repo)
	blobs, _ := os.ReadDir(filepath.Join(dir, "blobs"))
	for _, b := range blobs {
		lock, err := c.take(repo, b.Name())
		if held := new(filelock.HeldError); errors.As(err, &held) {
			return 0, fmt.Errorf("%s: %s is fetching it: end that first", repo, held.Holder())
		} else if err != nil {
			return 0, err
		}
		defer lock.Release()
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if info, infoErr := os.Lstat(p); infoErr == nil && info.Mode().IsRegular() && err == nil {
			freed += info.Size()
		}
		return err
	})
	return freed, errors.Join(err, os.RemoveAll(dir))
}
