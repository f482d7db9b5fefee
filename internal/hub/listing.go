package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
)

// Listing describes a repository's branch main.
type Listing struct {
	Repo         string
	Commit       string
	Files        []File
	Architecture string // of its GGUF files; may be empty
}

// maxListing bounds the hub's answer, and a manifest.
const maxListing = 64 << 20

var hashPattern = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// List asks the hub for a repository's files.
func (c *Client) List(ctx context.Context, repo string) (*Listing, error) {
	if c.Offline {
		return nil, fmt.Errorf("%s: HF_HUB_OFFLINE is set: unset it to fetch models", repo)
	}
	var answer struct {
		Sha      string
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64
			Blob string `json:"blobId"`
			LFS  *struct {
				Sha256 string
				Size   int64
			}
		}
		GGUF struct{ Architecture string }
	}
	err := c.retry(ctx, min(c.tries, 3), func() (bool, error) {
		body, err := c.open(ctx, c.Endpoint+"/api/models/"+repo+"/revision/main?blobs=true", nil)
		if err != nil {
			return false, err
		}
		defer body.Close()
		if err := json.NewDecoder(io.LimitReader(body, maxListing)).Decode(&answer); err != nil {
			return false, fmt.Errorf("the list of files cannot be read: %w", err)
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", repo, err)
	}
	l := &Listing{Repo: repo, Commit: answer.Sha, Architecture: answer.GGUF.Architecture}
	if !hashPattern.MatchString(l.Commit) {
		return nil, fmt.Errorf("%s: %s gives %q as the commit: check HF_ENDPOINT", repo, c.Endpoint, l.Commit)
	}
	for _, s := range answer.Siblings {
		f := File{Path: s.Name, Hash: s.Blob, Size: -1}
		if s.Size != nil {
			f.Size = *s.Size
		}
		if s.LFS != nil {
			f.Hash, f.Size = s.LFS.Sha256, s.LFS.Size
		}
		l.Files = append(l.Files, f)
	}
	return l, nil
}

// check refuses a file that lacks the data needed to verify it, or whose name is impossible here,
// such as one with a colon on Windows. Other files of the repository may have such names.
func (f *File) check() error {
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return fmt.Errorf("the hub lists a file %q, which is outside the repository or not a valid path on this system", f.Path)
	}
	if f.Size < 0 || !hashPattern.MatchString(f.Hash) {
		return fmt.Errorf("%s: the hub gives no size or hash, so the file cannot be verified", f.Path)
	}
	return nil
}

// address returns the URL to fetch a file of a listing from.
func (c *Client) address(l *Listing, f File) string {
	return c.Endpoint + "/" + l.Repo + "/resolve/" + l.Commit + "/" + (&url.URL{Path: f.Path}).EscapedPath()
}
