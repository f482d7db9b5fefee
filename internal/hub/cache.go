// The contents of the cache.

package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/files/infile"
)

// snapshots lists a repository's snapshot folders: the one of branch main, then the others, the newest first.
func (c *Client) snapshots(repo string) (paths []string) {
	dir := filepath.Join(c.folder(repo), "snapshots")
	entries, _ := os.ReadDir(dir) // none if there is no folder
	main, _ := infile.ReadFile(filepath.Join(c.folder(repo), "refs", "main"), 1<<10)
	time := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			p := filepath.Join(dir, e.Name())
			paths, time[p] = append(paths, p), info.ModTime().UnixNano()
			if e.Name() == strings.TrimSpace(string(main)) {
				time[p] = math.MaxInt64
			}
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(time[b], time[a]) })
	return paths
}

// at returns the place of a repository's file in a snapshot folder.
func at(snapshot, path string) string { return filepath.Join(snapshot, filepath.FromSlash(path)) }

// filesIn lists the files of a snapshot whose contents exist.
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

// Find returns the path of a model in the cache: a file, or a folder. The error is ErrNotCached if
// there is none.
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
				_ = os.Chtimes(at(s, f.Path), time.Now(), time.Time{}) // for Entries; fails for another user's file
			}
			return at(s, m.Path), nil
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
	State string    `json:"state,omitempty"` // the problem, if parts are missing or cannot be read
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
				list = append(list, Entry{Repo: repo, File: ".", Path: s, State: "unreadable", Used: accessTime(s)})
				continue
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
				path := filepath.Join(c.folder(repo), "blobs", b.Name())
				list = append(list, Entry{Repo: repo, Bytes: info.Size(), Used: info.ModTime(), Path: path, State: "incomplete"})
			}
		}
	}
	return list, err
}

func entry(repo, snapshot string, m *Model) Entry {
	e := Entry{Repo: repo, File: m.Path, Type: m.Type, Bytes: m.Bytes(), Path: at(snapshot, m.Path)}
	if m.Whole() != nil {
		e.State = "incomplete"
	}
	for _, f := range m.Files {
		if t := accessTime(at(snapshot, f.Path)); t.After(e.Used) {
			e.Used = t
		}
	}
	return e
}

// Remove removes a model from the cache, or if no file is named the whole repository, and returns
// the number of bytes freed. It keeps contents that another file uses. The error is ErrNotCached if
// there is nothing to remove. While a process fetches from the repository, nothing is removed.
func (c *Client) Remove(n Name) (freed int64, err error) {
	dir := c.folder(n.Repo)
	before, err := bytesIn(dir)
	if err != nil {
		return 0, ErrNotCached
	}
	blobs, _ := os.ReadDir(filepath.Join(dir, "blobs")) // none if the files are in the snapshots
	var shared []string
	for _, b := range blobs {
		if to, err := os.Readlink(filepath.Join(dir, "blobs", b.Name())); err == nil {
			shared = append(shared, filepath.Join(dir, "blobs", to))
		}
		hash, _, _ := strings.Cut(b.Name(), ".")
		path := c.lockPath(n.Repo, hash)
		if err := makeFolders(path); err != nil {
			return 0, err
		}
		lock, err := filelock.Take(path)
		if held := new(filelock.HeldError); errors.As(err, &held) {
			return 0, fmt.Errorf("%s is fetching from it: stop that first", held.Holder())
		} else if err != nil {
			return 0, err
		}
		defer lock.Release()
	}
	left, err := c.removeModel(n)
	if err == nil && !left {
		err = os.RemoveAll(dir)
	} else if err == nil {
		err = removeUnseen(dir, blobs)
	}
	after, _ := bytesIn(dir) // none if the folder is gone
	freed = before - after
	for _, content := range shared {
		freed += c.sweep(content)
	}
	return freed, err
}

// sweep removes a content that no repository's blob links to, if other tools keep all repositories' contents together:
// CACHE/blobs/XX/HASH, with a list of links, HASH.refs. It returns the bytes freed. In doubt it removes nothing.
func (c *Client) sweep(content string) (freed int64) {
	store := filepath.Dir(filepath.Dir(content))
	version, _ := os.ReadFile(filepath.Join(store, ".huggingface-shared-blobs"))
	if store != filepath.Join(c.Cache, "blobs") || string(version) != "1\n" {
		return 0
	}
	lock, err := filelock.Take(content + ".lock")
	if err != nil {
		return 0
	}
	defer lock.Release()
	links, err := os.ReadFile(content + ".refs")
	if err != nil {
		return 0
	}
	for link := range strings.Lines(string(links)) {
		if _, err := os.Lstat(filepath.Join(c.Cache, strings.TrimSpace(link))); !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
	}
	info, err := os.Lstat(content)
	if err = errors.Join(err, os.Remove(content), os.Remove(content+".refs")); err != nil {
		return 0
	}
	return info.Size()
}

// removeModel removes the files of a model from all snapshots, and reports whether a model is left.
func (c *Client) removeModel(n Name) (left bool, err error) {
	if n.What == "" {
		return false, nil
	}
	missing := ErrNotCached
	for _, s := range c.snapshots(n.Repo) {
		files, err := filesIn(s)
		if err != nil {
			return false, err
		}
		models := Models(files)
		m := pick(models, n.What)
		if m == nil {
			left = left || len(models) > 0
			continue
		}
		missing, left = nil, left || len(models) > 1
		for _, f := range m.Files {
			if f.Path != Manifest {
				err = errors.Join(err, os.Remove(at(s, f.Path)))
			}
		}
		if err != nil {
			return true, err
		}
	}
	return left, missing
}

// removeUnseen removes the blobs that no file of a snapshot links to.
func removeUnseen(dir string, blobs []fs.DirEntry) error {
	seen := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(dir, "snapshots"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			seen[filepath.Base(to)] = true
			return err
		}
		return err
	})
	for _, b := range blobs {
		if err == nil && !seen[b.Name()] && !strings.HasSuffix(b.Name(), incomplete) {
			err = os.Remove(filepath.Join(dir, "blobs", b.Name()))
		}
	}
	return err
}

// bytesIn returns the size of the regular files in a folder.
func bytesIn(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
