package hub

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Client reads the hub and the cache.
type Client struct {
	Endpoint string // URL of the hub, without a trailing slash
	Token    string // sent to the endpoint's host only; may be empty
	Cache    string // folder of the cache
	Offline  bool   // nothing may be fetched

	// Progress, if set, gets the progress of a file's stage, in bytes. One goroutine calls it at a
	// time.
	Progress func(stage string, done, total int64)
	// Note, if set, gets a line about a retry, a restart or a wait.
	Note func(text string)

	connections int           // at a time, for one file
	chunk       int64         // bytes per request if a file has several
	tries       int           // attempts without any byte before giving up
	pause       time.Duration // before the second attempt; doubled each time
	stall       time.Duration // time without a byte after which a connection is given up
	http        *http.Client

	// Tests replace the operating system here.
	space   func(dir string) (int64, error)
	write   func(f *os.File, p []byte) (int, error)
	symlink func(to, path string) error
	sync    func(f *os.File) error
}

// New returns a client of a hub and a cache.
func New(endpoint, cache string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // ranges must count the bytes of the file
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true) // HTTP/2 would send all requests over one connection
	c := &Client{
		Endpoint: strings.TrimRight(endpoint, "/"), Cache: cache,
		connections: 8, chunk: 8 << 20, tries: 6, pause: time.Second, stall: 30 * time.Second,
		space: freeSpace, write: (*os.File).Write, symlink: os.Symlink, sync: (*os.File).Sync,
	}
	transport.MaxIdleConnsPerHost = c.connections
	c.http = &http.Client{Transport: transport, CheckRedirect: c.redirect}
	return c
}

// FromEnv returns the client that the hub's environment variables describe.
func FromEnv() (*Client, error) {
	base := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join("~", ".cache"))
	home, err := expand(cmp.Or(os.Getenv("HF_HOME"), filepath.Join(base, "huggingface")))
	if err != nil {
		return nil, err
	}
	cache, err := expand(cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE")))
	if err != nil {
		return nil, err
	}
	endpoint := cmp.Or(os.Getenv("HF_ENDPOINT"), "https://huggingface.co")
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("HF_ENDPOINT is %q: want a URL that begins with https:// or http://", endpoint)
	}
	c := New(endpoint, cmp.Or(cache, filepath.Join(home, "hub")))
	c.Offline = isTrue(cmp.Or(os.Getenv("HF_HUB_OFFLINE"), os.Getenv("TRANSFORMERS_OFFLINE")))
	c.Token = strings.TrimSpace(cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")))
	if c.Token == "" && !isTrue(os.Getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		path, err := expand(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
		if err != nil {
			return nil, err
		}
		data, _ := os.ReadFile(path) // no file means no token
		c.Token = strings.TrimSpace(string(data))
	}
	return c, nil
}

func isTrue(v string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(v))
}

// expand expands variables, and ~ at the beginning.
func expand(path string) (string, error) {
	path = os.ExpandEnv(path)
	if path != "~" && !strings.HasPrefix(path, "~/") && !strings.HasPrefix(path, `~\`) {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if u, known := user.Current(); err != nil && known == nil { // a service may run without HOME
		home, err = u.HomeDir, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: there is no home folder: set HF_HOME: %w", path, err)
	}
	return filepath.Join(home, path[1:]), nil
}

func (c *Client) notef(format string, args ...any) {
	if c.Note != nil {
		c.Note(fmt.Sprintf(format, args...))
	}
}

// Name names a model of the hub: ORG/REPO, or ORG/REPO:WHAT with a file or a type.
type Name struct{ Repo, What string }

func (n Name) String() string {
	if n.What == "" {
		return n.Repo
	}
	return n.Repo + ":" + n.What
}

var repoPattern = regexp.MustCompile(`^\w(?:[\w.-]{0,94}\w)?/\w(?:[\w.-]{0,94}\w)?$`)

// The hub's addresses of repositories and of their files, which people copy.
var (
	hubPrefix = regexp.MustCompile(`^(?:https?://)?(?:hf\.co|huggingface\.co)/`)
	filePart  = regexp.MustCompile(`/(?:resolve|blob)/main/(.+)$|/tree/main$`)
)

// ParseName parses a name, or the hub's address of a model. ok is false if text is neither.
func ParseName(text string) (n Name, ok bool) {
	if at := hubPrefix.FindStringIndex(text); at != nil {
		path, _, _ := strings.Cut(text[at[1]:], "?")
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
		text = strings.TrimRight(filePart.ReplaceAllString(path, ":$1"), ":/")
	}
	repo, what, colon := strings.Cut(text, ":")
	bad := strings.Contains(repo, "--") || strings.Contains(repo, "..") || colon && what == ""
	if bad || !repoPattern.MatchString(repo) {
		return Name{}, false
	}
	return Name{repo, what}, true
}

// ErrNotCached is the error for a model that the cache does not have.
var ErrNotCached = errors.New("it is not in the cache")
