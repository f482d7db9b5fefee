// Package otel tells OpenTelemetry of the requests that package serve answers: a span for each,
// whose parent is the one that the request's header traceparent names (W3C Trace Context).
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	s, err := serve.New(serve.Options{OnEnd: otel.Spans(provider)})
//
// It is a module of its own, so that grove does not depend on OpenTelemetry.
package otel

import (
	"context"

	"github.com/grovellm/grove/serve"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// operations are the names of endpoints in the semantic conventions of generative AI.
var operations = map[string]string{
	"/v1/chat/completions": "chat",
	"/v1/responses":        "chat",
	"/v1/messages":         "chat",
	"/api/chat":            "chat",
	"/v1/completions":      "text_completion",
	"/api/generate":        "text_completion",
	"/infill":              "text_completion",
	"/v1/embeddings":       "embeddings",
	"/api/embed":           "embeddings",
	"/api/embeddings":      "embeddings",
}

// Spans returns a function for serve.Options.OnEnd. It begins and ends a span of kind server with
// the times of the request. The event "first token" is when the first token was there; attributes
// follow the semantic conventions of HTTP and of generative AI. Probes and /metrics have no spans.
func Spans(p trace.TracerProvider) func(*serve.Ended) {
	tracer := p.Tracer("github.com/grovellm/grove/serve/otel")
	return func(e *serve.Ended) {
		r := e.Request
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
		_, span := tracer.Start(ctx, r.Method+" "+e.Endpoint, trace.WithTimestamp(e.Began),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes(e)...))
		if e.First > 0 {
			span.AddEvent("first token", trace.WithTimestamp(e.Began.Add(e.First)))
		}
		if e.Err != nil {
			span.RecordError(e.Err, trace.WithTimestamp(e.Began.Add(e.Took)))
		}
		if e.Status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End(trace.WithTimestamp(e.Began.Add(e.Took)))
	}
}

func attributes(e *serve.Ended) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("http.request.method", e.Request.Method),
		attribute.String("http.route", e.Endpoint),
		attribute.Int("http.response.status_code", e.Status),
		attribute.String("grove.request.id", e.ID),
	}
	for key, value := range map[string]string{"gen_ai.operation.name": operations[e.Endpoint],
		"gen_ai.response.model": e.Model, "grove.tenant": e.Tenant} {
		if value != "" {
			list = append(list, attribute.String(key, value))
		}
	}
	if e.Prompt > 0 {
		list = append(list, attribute.Int("gen_ai.usage.input_tokens", e.Prompt),
			attribute.Int("gen_ai.usage.output_tokens", e.Tokens),
			attribute.Int("gen_ai.usage.cache_read.input_tokens", e.Cached))
	}
	if e.Finish != "" {
		list = append(list, attribute.StringSlice("gen_ai.response.finish_reasons", []string{e.Finish}))
	}
	return list
}
