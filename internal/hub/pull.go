package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/filelock"
)

// incomplete is the suffix, after the hash, of the name of a blob that is being fetched.
const incomplete = ".incomplete"

// Pull fetches a model's files that the cache lacks, and returns the path to open. Files are fetched
// in order: check, if set, sees the folder when everything but the weights is there, and may refuse
// the model. When Pull fails or ctx ends, the data fetched so far stays, and the next Pull continues.
func (c *Client) Pull(ctx context.Context, l *Listing, m *Model, check func(dir string) error) (string, error) {
	snapshot := filepath.Join(c.folder(l.Repo), "snapshots", l.Commit)
	var missing []File
	count := &counter{}
	for _, f := range m.Files {
		if err := f.check(); err != nil {
			return "", err
		}
		if !hasSize(at(snapshot, f.Path), f.Size) {
			missing = append(missing, f)
			count.total += c.lacks(l.Repo, f)
		}
	}
	if err := c.checkSpace(l.Repo, count.total); err != nil {
		return "", err
	}
	if c.Progress != nil {
		count.tell = func(done, total int64) { c.Progress("fetching", done, total) }
	}
	path := at(snapshot, m.Path)
	for _, f := range missing {
		if isWeights(f.Path) && check != nil {
			if err := check(snapshot); err != nil {
				return "", err
			}
			check = nil
		}
		if err := c.get(ctx, l, f, snapshot, count); err != nil {
			return "", err
		}
	}
	if len(missing) == 0 && check != nil {
		if err := check(snapshot); err != nil {
			return "", err
		}
	}
	ref := filepath.Join(c.folder(l.Repo), "refs", "main")
	if old, err := os.ReadFile(ref); err == nil && string(old) == l.Commit {
		return path, nil
	}
	if err := makeFolders(ref); err != nil {
		return "", err
	}
	return path, os.WriteFile(ref, []byte(l.Commit), 0o666)
}

// isWeights reports whether a file is large.
func isWeights(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gguf", ".safetensors", ".bin":
		return true
	}
	return false
}

// makeFolders makes the folders of paths in the cache.
func makeFolders(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("%w: set HF_HUB_CACHE to a writable folder for models", err)
		}
	}
	return nil
}

// folder returns a repository's folder.
func (c *Client) folder(repo string) string {
	return filepath.Join(c.Cache, "models--"+strings.ReplaceAll(repo, "/", "--"))
}

func (c *Client) blob(repo string, f File) string {
	return filepath.Join(c.folder(repo), "blobs", f.Hash)
}

func hasSize(path string, n int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == n
}

// lacks returns how many bytes of a file must be fetched.
func (c *Client) lacks(repo string, f File) int64 {
	blob := c.blob(repo, f)
	if hasSize(blob, f.Size) {
		return 0
	}
	if info, err := os.Stat(blob + incomplete); err == nil && info.Size() <= f.Size {
		return f.Size - info.Size()
	}
	return f.Size
}

const howToFree = "grove list shows models, grove rm removes them"

// checkSpace refuses more bytes than the disk can take.
func (c *Client) checkSpace(repo string, need int64) error {
	dir := c.Cache
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := c.space(dir)
	if err != nil {
		return err
	}
	if need > free {
		return fmt.Errorf("%s: the fetch needs %s, but the disk of %s has only %s free: free %s (%s), or set HF_HUB_CACHE to a folder "+
			"on another disk", repo, size(need), c.Cache, size(free), size(need-free), howToFree)
	}
	return nil
}

// get puts a file in its place in the snapshot.
func (c *Client) get(ctx context.Context, l *Listing, f File, snapshot string, count *counter) error {
	lock, err := c.lock(ctx, l.Repo, f.Hash)
	if err != nil {
		return err
	}
	defer lock.Release()
	path, blob := at(snapshot, f.Path), c.blob(l.Repo, f)
	if err := makeFolders(path, blob); err != nil {
		return err
	}
	if hasSize(path, f.Size) {
		return nil // another process has fetched it
	}
	fetched := !hasSize(blob, f.Size)
	if fetched {
		d := &download{Client: c, address: c.address(l, f), file: f, counter: count}
		if err := d.fetch(ctx, blob); err != nil {
			return err
		}
	}
	return c.link(blob, path, fetched)
}

// link makes path show a blob: by a symbolic link, or if the system has none, by moving a blob just
// fetched or copying another.
func (c *Client) link(blob, path string, fetched bool) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(path), blob)
	if err == nil {
		err = c.symlink(to, path)
	}
	switch {
	case err == nil:
		return nil
	case fetched:
		return atomicfile.Rename(blob, path)
	}
	from, err := os.Open(blob)
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

// lockPath returns the file that a process locks while it fetches or removes a blob.
func (c *Client) lockPath(repo, hash string) string {
	return filepath.Join(c.Cache, ".locks", filepath.Base(c.folder(repo)), hash+".lock")
}

// lock waits for a blob's lock.
func (c *Client) lock(ctx context.Context, repo, hash string) (*filelock.Lock, error) {
	path := c.lockPath(repo, hash)
	if err := makeFolders(path); err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		lock, err := filelock.Take(path)
		held := new(filelock.HeldError)
		if !errors.As(err, &held) {
			return lock, err
		}
		if !said {
			c.notef("waiting for %s, which is fetching the same file", held.Holder())
		}
		select {
		case <-time.After(c.pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// size formats a number of bytes for a person.
func size(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
