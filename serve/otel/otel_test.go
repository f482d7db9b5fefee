package otel_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
	"github.com/grovellm/grove/serve/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// Each request but a probe has one span, whose parent is that of its header; it has the request's
// times, figures and status.
func TestSpans(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const traceID, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const body = `{"prompt":"a b","max_tokens":7,"ignore_eos":true}`
	broken := errors.New("broken")
	for _, c := range []struct {
		name, method, path, body, header string
		leave                            bool // the client goes away
		load                             error
		span, parent                     string // of the span; empty: there is none
		status, tokens                   int
		failed                           bool
	}{
		{name: "a text", method: "POST", path: "/v1/completions", body: body, span: "POST /v1/completions",
			status: 200, tokens: 7},
		{name: "a stream", method: "POST", path: "/v1/completions", body: strings.Replace(body, "{", `{"stream":true,`, 1),
			header: "00-" + traceID + "-" + parent + "-01",
			span:   "POST /v1/completions", parent: parent, status: 200, tokens: 7},
		{name: "two choices", method: "POST", path: "/v1/completions", body: strings.Replace(body, "{", `{"n":2,`, 1),
			span: "POST /v1/completions", status: 200, tokens: 14},
		{name: "a trace that is not sampled", method: "POST", path: "/v1/completions", body: body, header: "00-" + traceID +
			"-" + parent + "-00"},
		{name: "a header that is none", method: "POST", path: "/tokenize", body: `{"content":"a"}`, header: "00-x-y-01",
			span: "POST /tokenize", status: 200},
		{name: "a wrong request", method: "POST", path: "/v1/chat/completions", body: `{}`,
			span: "POST /v1/chat/completions", status: 400},
		{name: "an unknown path", method: "GET", path: "/x", span: "GET other", status: 404},
		{name: "a client that leaves", method: "POST", path: "/v1/completions",
			body: strings.Replace(body, ":7", `:100000,"n":16`, 1), leave: true, span: "POST /v1/completions", status: 499},
		{name: "a model that is broken", method: "POST", path: "/v1/completions",
			body: strings.Replace(body, "{", `{"model":"bad",`, 1), load: broken,
			span: "POST /v1/completions", status: 500, failed: true},
		{name: "a probe", method: "GET", path: "/readyz"},
	} {
		exporter := tracetest.NewInMemoryExporter()
		provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
		s, err := serve.New(serve.Options{Log: slog.New(slog.DiscardHandler), OnEnd: otel.Spans(provider)})
		if err != nil {
			t.Fatal(err)
		}
		if c.load == nil {
			s.SetModel(&serve.Model{Model: m, Name: "small"})
		} else {
			bad := func() (*serve.Model, error) { return nil, c.load }
			if err := s.SetSources([]serve.Source{{Name: "bad", Load: bad}, {Name: "other", Load: bad}}); err != nil {
				t.Fatal(err)
			}
		}
		h := httptest.NewServer(s)
		ctx, cancel := context.WithCancel(t.Context())
		if c.leave {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		r, err := http.NewRequestWithContext(ctx, c.method, h.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Traceparent", c.header)
		before := time.Now()
		if a, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			a.Body.Close()
		} else if !c.leave {
			t.Fatal(err)
		}
		h.Close() // waits for requests
		cancel()
		spans := exporter.GetSpans()
		if c.span == "" {
			if len(spans) != 0 {
				t.Errorf("%s: %d spans", c.name, len(spans))
			}
			continue
		}
		if len(spans) != 1 {
			t.Fatalf("%s: %d spans", c.name, len(spans))
		}
		span := spans[0]
		has := attribute.NewSet(span.Attributes...)
		number := func(key string) int64 { v, _ := has.Value(attribute.Key(key)); return v.AsInt64() }
		model, _ := has.Value("gen_ai.response.model")
		switch {
		case span.Name != c.span || span.SpanKind != trace.SpanKindServer:
			t.Errorf("%s: span %s of kind %v", c.name, span.Name, span.SpanKind)
		case c.parent != "" && (span.Parent.SpanID().String() != c.parent || span.SpanContext.TraceID().String() != traceID ||
			!span.Parent.IsRemote()):
			t.Errorf("%s: parent %+v", c.name, span.Parent)
		case c.parent == "" && span.Parent.IsValid():
			t.Errorf("%s: it has a parent, %+v", c.name, span.Parent)
		case number("http.response.status_code") != int64(c.status) || (span.Status.Code == codes.Error) != c.failed:
			t.Errorf("%s: status %d, %v", c.name, number("http.response.status_code"), span.Status)
		case !c.leave && number("gen_ai.usage.output_tokens") != int64(c.tokens) || c.tokens > 0 &&
			(number("gen_ai.usage.input_tokens") < 1 || model.AsString() != "small"):
			t.Errorf("%s: %v", c.name, span.Attributes)
		case span.StartTime.Before(before) || span.EndTime.Before(span.StartTime) || span.EndTime.After(time.Now()):
			t.Errorf("%s: from %v to %v, asked at %v", c.name, span.StartTime, span.EndTime, before)
		}
		first := false
		for _, e := range span.Events {
			first = first || e.Name == "first token"
			if e.Time.Before(span.StartTime) || e.Time.After(span.EndTime) {
				t.Errorf("%s: event %s is not within its span", c.name, e.Name)
			}
		}
		if c.tokens > 0 != first && !c.leave {
			t.Errorf("%s: events %v", c.name, span.Events)
		}
	}
}
