// Package serve implements the HTTP APIs of OpenAI and others for a grove.Model: chat and text completions, streamed
// or whole, with health checks and metrics. docs/serve.md describes the endpoints and their fields.
//
//	s, err := serve.New(serve.Options{})
//	s.SetModel(&serve.Model{Model: m, Name: "qwen3-8b", Drafter: "eagle3"})
//	err = s.Serve(ctx, listener, 30*time.Second)
//
// SetSources serves several models, which are loaded when requests name them.
//
// Requests run concurrently: each generates in a goroutine, and the model's engine batches them.
//
// How a request is handled: exchange.go holds the request and its answer. body.go and decode.go read its body into a
// struct of its protocol (chat.go, completions.go, responses.go, anthropic.go, ollama.go). The struct's method
// conversation converts it to the form that all protocols share (conversation.go, options.go, tools.go), and call.go
// makes a grove.Request from that. answer.go and stream.go take the generated chunks, reader.go splits their text
// into reasoning, content and calls, and the protocol's form writes these (openai.go, *_answer.go). Start with
// chat.go.
package serve

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/engine"
)

// Model is a served model.
type Model struct {
	*grove.Model
	Name    string // what clients call it
	Drafter string // drafter for requests that name none; empty: plain decoding

	before   engine.Stats // from before the server had the model
	embedded atomic.Int64 // tokens of texts for embeddings
	lanes    lanes        // of requests for embeddings
	listing  sync.Once
	ready    []string // drafters that can run
}

// Options of a server. The zero value serves everyone who can connect.
type Options struct {
	Limits

	Keys []string // API keys, one of which a request must send; nil: none is needed
	CORS []string // origins whose web pages may call the server; "*" means any
	// host names for clients without a key, besides IP addresses and localhost: NAME, *.NAME, or * for any
	Hosts []string
	TLS   *tls.Config // for Serve; nil: plain HTTP

	// Objectives are the priorities of InferenceObjectives by name, for requests whose header
	// x-llm-d-inference-objective or x-gateway-inference-objective names one. A request's own priority comes
	// first.
	Objectives map[string]int

	// how long a model of SetSources stays loaded after its last request; 0: five minutes; below 0: forever
	KeepAlive time.Duration
	Pull      Puller // fetches models that clients name; nil: they may not
	Memory    int64  // maximum bytes for all models of SetSources together; 0: no limit
	Waiting   int    // requests that may wait for a model to load, or of a key for embeddings; 0: no limit

	NoStore  bool             // do not store responses of /v1/responses
	CutLines []*regexp.Regexp // matching lines of system messages are dropped from prompts

	Log        *slog.Logger // a line for each request; nil: slog.Default()
	LogPrompts bool         // write request bodies to the log

	OnEnd func(*Ended) // called by the request's goroutine when an answer has ended, except for probes; may be nil
}

// Server is an http.Handler.
type Server struct {
	o     Options
	keys  [][sha256.Size]byte
	cross http.CrossOriginProtection // refuses requests of other origins' web pages
	mux   *http.ServeMux
	began time.Time

	models   models
	draining context.Context // ends when requests are no longer accepted
	drain    context.CancelFunc
	stopping context.Context // ends when remaining requests are to be cancelled
	stop     context.CancelFunc

	turns   chan struct{}  // has an element for each large body that is being prepared
	stored  *responseStore // nil if none are kept
	metrics *metrics
	pace    pace
}

// New returns a server that has no model yet, and so is not ready.
func New(o Options) (*Server, error) {
	for field, limit := range reflect.ValueOf(o.Limits).Fields() {
		if limit.Int() < 0 {
			return nil, fmt.Errorf("serve: Limits.%s: %v: want a positive value, or 0 for the default", field.Name, limit)
		}
	}
	o.Limits.setDefaults()
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{o: o, mux: http.NewServeMux(), began: time.Now(),
		turns: make(chan struct{}, max(runtime.GOMAXPROCS(0)/4, 1))}
	for _, key := range o.Keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(key)))
	}
	for _, origin := range o.CORS {
		err := s.cross.AddTrustedOrigin(origin)
		switch {
		case origin == "*":
		case err != nil || strings.Contains(origin, "*"):
			return nil, fmt.Errorf("the origin %q: want a scheme and a host, such as https://example.com, or * for any origin", origin)
		}
	}
	if err := checkHosts(o.Hosts); err != nil {
		return nil, err
	}
	setDefault(&s.o.KeepAlive, defaultKeepAlive)
	s.draining, s.drain = context.WithCancel(context.Background())
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.models.o, s.models.draining = &s.o, s.draining.Done()
	s.metrics = newMetrics(s)
	if !o.NoStore {
		s.stored = newResponseStore(s.o.Stored, 64<<20)
	}
	for pattern, h := range map[string]func(*exchange) error{
		"POST /v1/completions":               s.completions,
		"POST /v1/chat/completions":          s.chatCompletions,
		"POST /v1/messages":                  s.messages,
		"POST /v1/messages/count_tokens":     s.countTokens,
		"POST /api/chat":                     s.ollamaChat,
		"POST /api/generate":                 s.ollamaGenerate,
		"POST /api/embed":                    s.ollamaEmbed,
		"POST /api/embeddings":               s.ollamaOneEmbedding,
		"POST /v1/embeddings":                s.embeddings,
		"POST /infill":                       s.infill,
		"POST /completion":                   s.llamaCompletion,
		"GET /props":                         s.props,
		"GET /api/tags":                      s.ollamaTags,
		"GET /api/ps":                        s.ollamaRunning,
		"POST /api/show":                     s.ollamaShow,
		"GET /api/version":                   s.ollamaVersionOf,
		"POST /api/pull":                     s.ollamaPull,
		"POST /v1/responses":                 s.responses,
		"POST /v1/responses/input_tokens":    s.countInput,
		"GET /v1/responses/{id}":             s.oneResponse,
		"DELETE /v1/responses/{id}":          s.deleteResponse,
		"GET /v1/responses/{id}/input_items": s.listInput,
		"POST /v1/responses/compact":         s.compact,
		"GET /v1/models":                     s.listModels,
		"GET /v1/models/{id...}":             s.oneModel,
		"POST /tokenize":                     s.tokenize,
		"POST /detokenize":                   s.detokenize,
		"GET /tokenizer_info":                s.tokenizerInfo,
		"GET /health":                        s.health,
		"GET /v1/health":                     s.health,
		"GET /ping":                          s.health,
		"GET /livez":                         s.livez,
		"GET /readyz":                        s.readyz,
		"GET /metrics":                       s.metrics.serve,
		"GET /status":                        s.status,
		"GET /{$}":                           s.showPage,
		"GET /page/":                         s.showPage,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*exchange)
			x.r = r
			if err := h(x); err != nil {
				x.fail(err)
			}
		})
	}
	return s, nil
}

// Serve answers requests from l until ctx ends. Then the server is no longer ready and refuses new
// requests. Running requests may take until drain has passed, or until Close; the remaining ones
// are cancelled. Serve closes l and the models that the server loaded.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	h := &http.Server{
		Handler:           s,
		TLSConfig:         s.o.TLS,
		ReadHeaderTimeout: s.o.Read,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(&connectionLog{log: s.o.Log}, "", 0),
	}
	defer s.CloseModels()
	defer s.stop()
	ended := make(chan error, 1)
	go func() {
		if s.o.TLS != nil {
			ended <- h.ServeTLS(l, "", "")
		} else {
			ended <- h.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain()
	s.o.Log.Info("draining", "limit", drain.String())
	limit, cancel := context.WithTimeout(s.stopping, drain)
	defer cancel()
	s.models.drain(limit) // /readyz answers until then
	if err := h.Shutdown(limit); err != nil {
		s.o.Log.Warn("requests were cancelled", "reason", context.Cause(limit))
		s.stop()
		last, cancel := context.WithTimeout(context.Background(), cancelTime)
		defer cancel()
		_ = h.Shutdown(last)
		_ = h.Close()
	}
	s.o.Log.Info("stopped")
	return nil
}

// connectionLog takes the lines that net/http logs. Most are the clients' doing, except that
// connections cannot be accepted.
type connectionLog struct {
	log    *slog.Logger
	warned time.Time
}

func (l *connectionLog) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), slog.LevelDebug
	if strings.HasPrefix(text, "http: Accept error") && time.Since(l.warned) > warnTime {
		l.warned, level = time.Now(), slog.LevelWarn
	}
	l.log.Log(context.Background(), level, text)
	return len(line), nil
}

// warnTime is the minimum time between two identical warnings.
const warnTime = 10 * time.Second

// cancelTime is how long cancelled requests have to send their errors.
const cancelTime = 2 * time.Second

// Close cancels all requests, and so ends the draining of Serve.
func (s *Server) Close() { s.stop() }
