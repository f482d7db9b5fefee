// Requests: who may see the token, which failures are retried, and when.

package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// fatal is an error that a retry would not fix.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// busy is an answer that asks the client to try again later.
type busy struct {
	status string
	after  time.Duration // 0: not stated
}

func (b busy) Error() string { return "the hub answered " + b.status }

var errStalled = errors.New("the connection stalled")

// longestWait is the longest pause at the hub's request that grove waits out.
const longestWait = 5 * time.Minute

// retry calls try until it succeeds, fails permanently, or has failed many times in a row without
// progress.
func (c *Client) retry(ctx context.Context, tries int, try func() (moved bool, err error)) error {
	for failures := 0; ; {
		moved, err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.As(err, new(fatal)) {
			return err
		}
		if moved {
			failures = 0
		}
		failures++
		if failures >= tries {
			return fmt.Errorf("%w; run the command again to continue", err)
		}
		wait := min(c.pause<<(failures-1), 30*time.Second)
		wait += rand.N(wait/4 + 1) // so that many clients do not retry at once
		var b busy
		if errors.As(err, &b) && b.after > 0 {
			wait = b.after
			if wait > longestWait {
				return fmt.Errorf("%w and asks to wait %v: run the command again after that", err, wait.Round(time.Second))
			}
		}
		c.notef("%v: trying again in %v", err, wait.Round(time.Second/10))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// redirect follows redirects, but hides the token from other hosts.
func (c *Client) redirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fatal{errors.New("the hub redirects endlessly")}
	}
	if !c.trusted(r.URL) {
		r.Header.Del("Authorization")
	}
	return nil
}

// trusted reports whether a URL is on the endpoint, which the token is for.
func (c *Client) trusted(u *url.URL) bool {
	e, err := url.Parse(c.Endpoint)
	return err == nil && e.Scheme == u.Scheme && e.Host == u.Host
}

// body is the body of an answer. If it stalls, it ends with an error.
type body struct {
	*http.Response
	watch  *time.Timer
	stall  time.Duration
	cancel context.CancelCauseFunc
	ctx    context.Context
}

func (b *body) Read(p []byte) (int, error) {
	b.watch.Reset(b.stall)
	n, err := b.Body.Read(p)
	b.watch.Stop() // a slow disk is not a stall
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.watch.Stop()
	b.cancel(nil)
	return b.Body.Close()
}

// causeOf returns the stall that ended a context, if there was one.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause == errStalled {
		return cause
	}
	return err
}

// open sends a request and returns a successful answer.
func (c *Client) open(ctx context.Context, address string, header http.Header) (*body, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &body{stall: c.stall, cancel: cancel, ctx: ctx, watch: time.AfterFunc(c.stall, func() { cancel(errStalled) })}
	fail := func(err error) (*body, error) {
		b.watch.Stop()
		cancel(nil)
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail(fatal{err})
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("User-Agent", "grove")
	r.Header.Set("Accept-Encoding", "identity")
	if c.Token != "" && c.trusted(r.URL) {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if b.Response, err = c.http.Do(r); err != nil {
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err // without the address, which may contain a signature
		}
		return fail(causeOf(ctx, err))
	}
	if err := c.refused(b.Response); err != nil {
		b.Body.Close()
		return fail(err)
	}
	return b, nil
}

// refused describes the hub's refusal; it returns nil for success.
func (c *Client) refused(r *http.Response) error {
	code := r.Header.Get("X-Error-Code")
	switch s := r.StatusCode; {
	case s == http.StatusOK || s == http.StatusPartialContent:
		return nil
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s == http.StatusTooManyRequests || s >= 500:
		return busy{r.Status, retryAfter(r.Header)}
	case code == "GatedRepo":
		return fatal{fmt.Errorf("access is granted on request: ask on %s, and set HF_TOKEN to your token", c.Endpoint)}
	case s == http.StatusUnauthorized && c.Token == "":
		return fatal{errors.New("there is no such repository, or it is private: check the name, or set HF_TOKEN to your token")}
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return fatal{fmt.Errorf("the hub answered %s: your token does not give access: check the name and HF_TOKEN", r.Status)}
	case s == http.StatusNotFound && code == "EntryNotFound":
		return fatal{errors.New("the hub has no such file")}
	case s == http.StatusNotFound:
		return fatal{errors.New("the hub has no such repository: check the name")}
	}
	return fatal{fmt.Errorf("the hub answered %s", r.Status)}
}

// resetPattern matches the end of RateLimit, such as "api";r=0;t=55, sent to a caller who must wait t seconds.
var resetPattern = regexp.MustCompile(`;r=0;t=(\d+)`)

// retryAfter returns how long an answer asks to wait: seconds, a date, or the hub's RateLimit.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if m := resetPattern.FindStringSubmatch(h.Get("RateLimit")); m != nil && text == "" {
		text = m[1]
	}
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, 1<<30)) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(time.Until(t), 0)
	}
	return 0
}
