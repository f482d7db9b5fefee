// Downloading one blob from the hub to the disk.

package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// download is the transfer of a file.
type download struct {
	*Client
	address string
	file    File
	counter *counter

	ranges atomic.Bool           // the server supports ranges
	at     atomic.Pointer[place] // where the server sends from, as long as that works
}

// place is the address at the end of the redirects. Its ETag tells whether the file has changed.
type place struct{ address, etag string }

// counter counts bytes for progress.
type counter struct {
	mu          sync.Mutex
	done, total int64
	tell        func(done, total int64)
}

func (c *counter) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if c.tell != nil {
		c.tell(c.done, c.total)
	}
}

// Write counts bytes that are written elsewhere.
func (c *counter) Write(p []byte) (int, error) {
	c.add(int64(len(p)))
	return len(p), nil
}

// restart takes back done bytes, and adds more to the total.
func (c *counter) restart(done, more int64) {
	c.mu.Lock()
	c.total += more
	c.mu.Unlock()
	c.add(-done)
}

// fetch downloads the blob to path. It does not fetch again the bytes of an incomplete file there.
// The hash of the file on disk decides whether it is right.
func (d *download) fetch(ctx context.Context, path string) error {
	part := path + incomplete
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	begin, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for {
		if begin > d.file.Size {
			begin, err = 0, restart(f)
			if err != nil {
				return err
			}
		}
		if err := d.rest(ctx, f, begin); err != nil {
			return d.failed(f, err)
		}
		good, err := d.verify(ctx, f)
		if err != nil {
			return err
		}
		if good {
			break
		}
		if err := restart(f); err != nil {
			return err
		}
		if begin == 0 { // all of it came from the hub
			err := fmt.Errorf("%s: the hub sent data that does not match its hash (%s): it was removed; try again later",
				d.file.Path, d.file.Hash)
			return errors.Join(err, f.Close(), os.Remove(part))
		}
		d.notef("%s: the part fetched before is damaged: fetching all of it", d.file.Path)
		d.counter.restart(d.file.Size-begin, begin)
		begin = 0
	}
	if err := d.sync(f); err != nil { // the content must be on disk before the file gets its name
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return atomicfile.Rename(part, path)
}

// restart empties a file.
func restart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return errors.Join(err, f.Truncate(0))
}

// failed describes an error that ends a transfer.
func (d *download) failed(f *os.File, err error) error {
	switch have, _ := f.Seek(0, io.SeekEnd); {
	case errors.Is(err, context.Canceled):
		return err
	case isFull(err):
		return fmt.Errorf("%s: the disk is full: free %s (%s), then run the command again: %s are kept: %w",
			d.file.Path, size(d.file.Size-have), howToFree, size(have), err)
	}
	return fmt.Errorf("%s: %w", d.file.Path, err)
}

// rest appends the bytes from begin on. At any moment the file is a prefix of the content: parts
// arrive in memory over several connections, and are written in order.
func (d *download) rest(ctx context.Context, f *os.File, begin int64) error {
	out := &output{d, f}
	first := min(begin+d.chunk, d.file.Size)
	if err := d.span(ctx, out, begin, first); err != nil || first == d.file.Size {
		return err
	}
	if !d.ranges.Load() {
		return d.span(ctx, out, first, d.file.Size)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	type part struct {
		bytes.Buffer
		done chan error
	}
	free, parts := make(chan *part, d.connections), make(chan *part, d.connections)
	for range d.connections {
		free <- &part{done: make(chan error, 1)}
	}
	running.Go(func() {
		defer close(parts)
		for from := first; from < d.file.Size; from += d.chunk {
			select {
			case p := <-free:
				running.Go(func() { p.done <- d.span(ctx, p, from, min(from+d.chunk, d.file.Size)) })
				parts <- p
			case <-ctx.Done():
				return
			}
		}
	})
	for p := range parts {
		err := <-p.done
		if _, full := out.Write(p.Bytes()); err == nil { // the beginning of a failed part counts as well
			err = full
		}
		if err != nil {
			return err
		}
		p.Reset()
		free <- p
	}
	return ctx.Err()
}

// output is a file. A write error ends the transfer.
type output struct {
	d *download
	f *os.File
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.d.write(o.f, p)
	if err != nil {
		err = fatal{err}
	}
	return n, err
}

// span fetches the bytes from..to, with as many requests as it takes.
func (d *download) span(ctx context.Context, w io.Writer, from, to int64) error {
	if from == to {
		return nil
	}
	return d.retry(ctx, d.tries, func() (bool, error) {
		n, err := d.request(ctx, w, from, to)
		from += n
		return n > 0, err
	})
}

// request makes one request for the bytes from..to, and returns how many were written.
func (d *download) request(ctx context.Context, w io.Writer, from, to int64) (n int64, err error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, to-1)}}
	address, at := d.address, d.at.Load()
	if at != nil {
		address = at.address
		if at.etag != "" {
			header.Set("If-Range", at.etag)
		}
	}
	b, err := d.open(ctx, address, header)
	if err != nil {
		d.at.CompareAndSwap(at, nil)
		if at != nil && errors.As(err, new(fatal)) {
			err = errors.New(err.Error()) // an address may expire: the next attempt starts again at the hub
		}
		return 0, err
	}
	defer b.Close()
	switch {
	case b.StatusCode == http.StatusPartialContent:
		got := b.Header.Get("Content-Range")
		begin, whole, _ := strings.Cut(got, "/")
		if !strings.HasPrefix(begin, fmt.Sprintf("bytes %d-", from)) || whole != "*" && whole != fmt.Sprint(d.file.Size) {
			return 0, fatal{fmt.Errorf("the server sent range %q instead of bytes %d to %d of %d", got, from, to-1, d.file.Size)}
		}
		d.ranges.Store(true)
		etag := b.Header.Get("ETag")
		if strings.HasPrefix(etag, "W/") {
			etag = "" // a weak one cannot be a condition for a range
		}
		d.at.CompareAndSwap(at, &place{b.Request.URL.String(), etag})
	case b.ContentLength >= 0 && b.ContentLength != d.file.Size:
		return 0, fatal{fmt.Errorf("the server sent %d bytes, but the hub lists %d", b.ContentLength, d.file.Size)}
	default: // the whole file: the server does not support ranges, or the file has changed, which the hash will reveal
		if _, err := io.CopyN(io.Discard, b, from); err != nil {
			return 0, early(err)
		}
	}
	n, err = io.CopyN(io.MultiWriter(w, d.counter), b, to-from)
	return n, early(err)
}

// early describes the end of a connection before the end of the file.
func early(err error) error {
	if err == io.EOF {
		return errors.New("the connection ended early")
	}
	return err
}

// verify compares the hash of the file on disk.
func (d *download) verify(ctx context.Context, f *os.File) (bool, error) {
	var h hash.Hash
	if len(d.file.Hash) == 2*sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", d.file.Size)
	}
	checked := &counter{total: d.file.Size}
	if d.Progress != nil && d.file.Size > d.chunk {
		checked.tell = func(done, total int64) { d.Progress("checking "+d.file.Path, done, total) }
	}
	r := io.NewSectionReader(f, 0, d.file.Size+1) // one byte more than expected
	buffer := make([]byte, 1<<20)
	for {
		n, err := r.Read(buffer)
		h.Write(buffer[:n])
		checked.add(int64(n))
		switch {
		case err == io.EOF:
			return checked.done == d.file.Size && hex.EncodeToString(h.Sum(nil)) == d.file.Hash, nil
		case err != nil:
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
	}
}
