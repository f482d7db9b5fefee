package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// readBody reads a request's body into the struct that to points at. It stops when the server drains, which would
// otherwise wait for a body whose request is refused.
func (x *exchange) readBody(to any) error {
	_ = x.control.SetReadDeadline(time.Now().Add(x.s.o.Read))
	body, err := x.openBody()
	if err != nil {
		return err
	}
	read := context.AfterFunc(x.s.draining, func() { _ = x.control.SetReadDeadline(time.Now()) })
	data, err := io.ReadAll(body)
	read()
	var big *http.MaxBytesError
	switch {
	case x.s.draining.Err() != nil:
		return errStopped
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newError(http.StatusRequestTimeout, "invalid_request_error", "slow_body",
			"the body did not arrive within %v", x.s.o.Read)
	case errors.As(err, &big):
		return newError(http.StatusRequestEntityTooLarge, "invalid_request_error", "body_too_large",
			"the body has more than %d bytes, which is this server's limit: send less", min(big.Limit, x.s.o.Body))
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && x.r.Context().Err() != nil: // the connection broke
		return errGone
	case err != nil: // the body ends early, or its chunks are malformed; the sender may still read an answer
		return newError(http.StatusBadRequest, "invalid_request_error", "unreadable_body",
			"the body cannot be read: %v", err)
	}
	_ = x.control.SetReadDeadline(time.Time{})
	x.body = bytes.TrimPrefix(data, []byte("\ufeff")) // programs on Windows begin files with it
	return parseBody(x.body, to)
}

// openBody returns the body's reader, which decompresses a body compressed with gzip. It bounds the
// compressed bytes as well as those read: a body that decompresses to nothing may be endless.
func (x *exchange) openBody() (io.Reader, error) {
	most := x.s.o.Body
	packed := false
	for _, list := range x.r.Header.Values("Content-Encoding") {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case name == "" || name == "identity":
			case !packed && (name == "gzip" || name == "x-gzip"):
				packed = true
			default:
				x.Header().Set("Accept-Encoding", "gzip")
				return nil, newError(http.StatusUnsupportedMediaType, "invalid_request_error", "unsupported_encoding",
					"Content-Encoding %q: want gzip, or a body that is not compressed", list)
			}
		}
	}
	body := x.r.Body
	if body == nil { // of a request that did not come over a network
		body = http.NoBody
	}
	if !packed {
		return http.MaxBytesReader(x.ResponseWriter, body, most), nil
	}
	added := most/64 + 1024 // more than gzip adds to incompressible data
	unpacked := &gzipReader{from: bufio.NewReader(http.MaxBytesReader(x.ResponseWriter, body, most+added))}
	return http.MaxBytesReader(x.ResponseWriter, unpacked, most), nil
}

// gzipReader decompresses a body. It reads the header in the first Read, so that Read returns the errors of a bad body.
type gzipReader struct {
	from *bufio.Reader
	to   *gzip.Reader
}

func (g *gzipReader) Read(b []byte) (n int, err error) {
	if g.to == nil {
		g.to, err = gzip.NewReader(g.from)
	}
	if errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, err
	}
	return g.to.Read(b)
}

func (g *gzipReader) Close() error { return nil }

// parseBody reads a JSON object into the struct that to points at.
func parseBody(data []byte, to any) error {
	bad := func(format string, args ...any) error {
		e, code := fieldError("the body", format, args...), "invalid_json"
		e.Param, e.Code = nil, &code
		return e
	}
	switch {
	case !utf8.Valid(data):
		return bad("it is not valid UTF-8")
	case depth(data) > maxDepth:
		return bad("arrays and objects are nested more than %d deep", maxDepth)
	}
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return bad("not JSON at byte %d: %v", syntax.Offset, syntax)
	case err != nil || whole[0] != '{':
		return bad("want a JSON object")
	}
	return new(decoder).read("", data, to)
}

// depth returns how deeply arrays and objects are nested.
func depth(data []byte) (most int) {
	now, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
