package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Ended says how a request ended.
type Ended struct {
	Request  *http.Request // its headers name its trace
	ID       string        // as in the log
	Endpoint string        // the path's pattern, such as /v1/models/{id...}; "other" if none matches
	Status   int           // HTTP status; if the answer had begun, that of the error that ended it; 499: the client disconnected first
	Model    string        // empty if none was used
	Tenant   string        // of the key; empty: none
	Began    time.Time
	First    time.Duration // time to the first token; 0: there was none
	Took     time.Duration
	Err      error // why it failed; its text quotes nothing from the body, unless prompts are logged

	Prompt, Cached, Tokens int    // tokens of prompts, those of them found in the cache, and generated tokens
	Finish                 string // why the last choice ended
}

// mostError bounds the bytes of an error in the log: a client may name a path or a model of any length.
const mostError = 1000

// end counts the request, writes its line of the log and tells whoever wants to know.
func (x *exchange) end(endpoint string) {
	f := &x.figure
	e := &Ended{Request: x.r, ID: x.id, Endpoint: endpoint, Status: x.outcome(), Model: x.model,
		Tenant: x.tenant, Began: x.began, First: f.first, Took: time.Since(x.began), Err: x.failure(),
		Prompt: f.prompt, Cached: f.cached, Tokens: f.tokens, Finish: f.finish}
	x.s.metrics.request(endpoint, e.Status, e.Took)
	level := slog.LevelInfo
	if probes[endpoint] {
		level = slog.LevelDebug
	} else if x.s.o.OnEnd != nil {
		x.s.o.OnEnd(e)
	}
	line := e.line()
	if x.s.o.LogPrompts && x.body != nil {
		line = append(line, "body", string(x.body))
	}
	x.s.o.Log.Log(context.WithoutCancel(x.r.Context()), level, "request", append(line, "took_ms", ms(e.Took))...)
}

// outcome returns the status that describes how the request went. It may differ from the status that was sent.
func (x *exchange) outcome() int {
	if x.err != nil {
		return x.errorOf(x.err).Status
	}
	return x.status
}

// failure returns why the request failed, for the log.
func (x *exchange) failure() error {
	if x.err != nil && !x.s.o.LogPrompts {
		if e := x.errorOf(x.err); e.logged != "" {
			return errors.New(e.logged)
		}
	}
	return x.err
}

// line returns the attributes of the log's line.
func (e *Ended) line() []any {
	line := []any{"id", e.ID, "client", e.Request.RemoteAddr, "endpoint", e.Endpoint, "status", e.Status}
	if trace, span, ok := traceOf(e.Request); ok {
		line = append(line, "trace_id", trace, "parent_id", span)
	}
	if e.Model != "" {
		line = append(line, "model", e.Model)
	}
	if e.Prompt > 0 {
		line = append(line, "prompt", e.Prompt, "cached", e.Cached, "tokens", e.Tokens)
	}
	if e.First > 0 {
		line = append(line, "ttft_ms", ms(e.First))
	}
	if e.Finish != "" {
		line = append(line, "finish", e.Finish)
	}
	if e.Tenant != "" {
		line = append(line, "tenant", e.Tenant[:min(len(e.Tenant), len("key-")+8)])
	}
	if e.Err != nil {
		line = append(line, "error", shortened(e.Err.Error(), mostError))
	}
	return line
}
