package serve

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// exchange is a request and its answer, with the data that the log shows about them.
type exchange struct {
	http.ResponseWriter
	s       *Server
	r       *http.Request
	control *http.ResponseController

	id     string
	began  time.Time
	tenant string
	status int // the status sent; 0 if none yet
	param  func(field string) string

	model    string // the model in use; empty if none
	release  func() // ends the use
	inTurn   bool   // see takeTurn
	endTurn  func()
	load     time.Duration // how long the model took to be ready
	protocol *protocol     // of its endpoint

	body   []byte
	figure figures
	err    error // why it failed, perhaps in the middle of the answer
}

// figures are the log's numbers about a generation.
type figures struct {
	prompt, cached, tokens int
	first                  time.Duration // until the first token
	finish                 string
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) WriteHeader(status int) {
	x.endTurn()
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n := 0
	for piece := range slices.Chunk(b, mostWrite) { // each has its time: a client may read a long answer slowly
		_ = x.control.SetWriteDeadline(time.Now().Add(x.s.o.Write))
		written, err := x.ResponseWriter.Write(piece)
		n += written
		if err != nil {
			return n, unsent(err)
		}
	}
	return n, nil
}

// mostWrite bounds the bytes that a client has Limits.Write to receive.
const mostWrite = 64 << 10

// flush sends the data written so far. It clears the deadline until the next write, because HTTP/2
// would end an idle stream there.
func (x *exchange) flush() error {
	err := x.control.Flush()
	_ = x.control.SetWriteDeadline(time.Time{})
	return unsent(err)
}

// unsent returns the error of a write: the client does not read. A middleware's writer that cannot flush sends later.
func unsent(err error) error {
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = withVersion(r)
	x := &exchange{ResponseWriter: w, s: s, r: r, control: http.NewResponseController(w), began: time.Now(),
		id: requestID(r), protocol: protocolOf(r)}
	x.param = func(field string) string { return field }
	x.release, x.endTurn = func() {}, func() {}
	x.Header().Set("X-Request-Id", x.id)
	if name := x.protocol.idHeader; name != "" {
		x.Header().Set(name, x.id)
	}
	_ = x.control.SetWriteDeadline(time.Time{})
	if r.Body != http.NoBody { // an answer that did not read the body waits for the rest
		_ = x.control.SetReadDeadline(x.began.Add(s.o.Read))
	}
	endpoint := "other"
	defer func() {
		p, begun := recover(), x.status != 0
		if p != nil {
			s.o.Log.Error("panic", "id", x.id, "panic", p, "stack", string(debug.Stack()))
			x.fail(fmt.Errorf("panic: %v", p))
		}
		_ = x.control.SetWriteDeadline(time.Now().Add(s.o.Write)) // for the remaining data
		x.release()
		x.endTurn()
		x.end(endpoint)
		gone := x.err != nil && x.errorOf(x.err) == errGone && r.Context().Value(http.ServerContextKey) != nil
		if p != nil && begun || gone {
			panic(http.ErrAbortHandler) // a client that still reads must not mistake the answer for complete
		}
	}()
	if !s.allowHost(x) || !s.allowOrigin(x) {
		return
	}
	h, pattern := s.mux.Handler(r)
	switch {
	case pattern == "":
		x.notFound(h)
		return
	case strings.ContainsRune(pattern, ' '):
		_, endpoint, _ = strings.Cut(pattern, " ")
	}
	if !probes[endpoint] && !s.authorize(x) {
		x.Header().Set("WWW-Authenticate", "Bearer")
		x.fail(newError(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key",
			"no valid API key: send one as \"Authorization: Bearer KEY\""))
		return
	}
	s.mux.ServeHTTP(x, r)
}

// probes are the endpoints that need no key and that the log leaves out.
var probes = map[string]bool{"/health": true, "/v1/health": true, "/ping": true, "/livez": true, "/readyz": true,
	"/metrics": true, "/{$}": true, "/page/": true}

// requestID returns the id that the client or a proxy gave, if it is fit for a log, or else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	printable := strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if id == "" || len(id) > 128 || !printable {
		return rand.Text()
	}
	return id
}

// traceParent matches version 00 of the header traceparent (W3C Trace Context), or the beginning of a later version.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)`)

// traceOf returns the ids of the trace and the span that the request belongs to, if its headers name them.
func traceOf(r *http.Request) (trace, span string, ok bool) {
	m := traceParent.FindStringSubmatch(r.Header.Get("Traceparent"))
	if m == nil || strings.HasPrefix(m[0], "ff") || strings.Trim(m[1], "0") == "" || strings.Trim(m[2], "0") == "" {
		return "", "", false
	}
	return m[1], m[2], true
}

// authorize looks for the request's key among the server's, in a time that reveals nothing about
// them, and sets the key's tenant.
func (s *Server) authorize(x *exchange) bool {
	if s.o.Keys == nil {
		return true
	}
	given := x.r.Header.Get("X-Api-Key")
	if scheme, key, _ := strings.Cut(x.r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		given = strings.TrimSpace(key)
	}
	sum, found := sha256.Sum256([]byte(given)), 0
	for _, key := range s.keys {
		found |= subtle.ConstantTimeCompare(sum[:], key[:])
	}
	if found == 0 || given == "" { // a program may take keys from an unset variable
		return false
	}
	x.tenant = "key-" + hex.EncodeToString(sum[:16]) // this stays the same when the file of keys is reordered
	return true
}

// allowOrigin answers a browser's preflight request, and refuses requests from pages of origins
// that are not allowed. It reports whether to go on with the request.
func (s *Server) allowOrigin(x *exchange) bool {
	origin, h := x.r.Header.Get("Origin"), x.Header()
	all := slices.Contains(s.o.CORS, "*")
	if all {
		origin = "*"
	}
	allowed := slices.Contains(s.o.CORS, origin)
	if len(s.o.CORS) > 0 {
		h.Add("Vary", "Origin")
	}
	if allowed {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, "+warningHeader)
	}
	preflight := x.r.Method == http.MethodOptions && x.r.Header.Get("Access-Control-Request-Method") != ""
	switch {
	case preflight && allowed:
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "*, Authorization, Content-Type")
		h.Set("Access-Control-Max-Age", "600")
		x.WriteHeader(http.StatusNoContent)
		return false
	case preflight && origin != "", !all && s.cross.Check(x.r) != nil:
		x.fail(crossOrigin(origin))
		return false
	}
	return true
}

// notFound answers a request that no endpoint matches, with the status that h, the mux's handler, sends.
func (x *exchange) notFound(h http.Handler) {
	d := &discard{ResponseWriter: x}
	h.ServeHTTP(d, x.r)
	if d.status == http.StatusMethodNotAllowed {
		x.fail(newError(d.status, "invalid_request_error", "method_not_allowed", "%s %s: want %s", x.r.Method,
			x.r.URL.Path, x.Header().Get("Allow")))
		return
	}
	x.fail(newError(http.StatusNotFound, "invalid_request_error", "not_found", "%s: there is no such endpoint",
		x.r.URL.Path))
}

// discard keeps only the status of an answer.
type discard struct {
	http.ResponseWriter
	status int
}

func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// fail answers with an error, unless an answer has begun.
func (x *exchange) fail(err error) {
	e := x.errorOf(err)
	x.err = err
	switch {
	case x.status != 0 || e == errGone:
		return
	case e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable:
		x.Header().Set("Retry-After", x.retryAfter(e))
	}
	_ = x.writeJSON(e.Status, x.protocol.errorBody(x, e))
}

// errorOf returns err as the client sees it.
func (x *exchange) errorOf(err error) *apiError { return errorOf(err, x.param, x.protocol.overflow) }

func (x *exchange) writeJSON(status int, v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(status)
	_, err = x.Write(data)
	return err
}

// marshal returns v as a line of JSON, in which < and > are not escaped.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
