package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/speculate"
)

// apiError is an error in OpenAI's form.
type apiError struct {
	Status int    `json:"-"` // HTTP status
	logged string // Message without the body's text; empty if it quotes nothing

	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // the field of the request that is wrong
	Code    *string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

func newError(status int, kind, code, format string, args ...any) *apiError {
	e := &apiError{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
	if code != "" {
		e.Code = &code
	}
	return e
}

// fieldError returns an error that says what is wrong with the value of a field of the body.
func fieldError(field, format string, args ...any) *apiError {
	e := newError(http.StatusBadRequest, "invalid_request_error", "", "%s: %s", field, fmt.Sprintf(format, args...))
	e.Param = &field
	for i, arg := range args {
		args[i] = hidden{arg}
	}
	e.logged = field + ": " + fmt.Sprintf(format, args...)
	return e
}

// hidden is an argument of an error that may come from the body: the log gets only its kind.
type hidden struct{ arg any }

func (h hidden) Format(to fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(to, verb), h.arg)
	switch arg := h.arg.(type) {
	case shown:
		text = arg.kind
	case error:
		text = "see the error response"
	default:
		if verb == 'q' {
			text = "a string"
		}
	}
	_, _ = io.WriteString(to, text)
}

// Causes for which the server ends a request.
var (
	errStopped = newError(http.StatusServiceUnavailable, "server_error", "shutting_down",
		"the server is shutting down: send the request again, to another server or later")
	errLoading = newError(http.StatusServiceUnavailable, "server_error", "loading",
		"the model is loading: try again when /readyz answers 200")
	errTime = newError(http.StatusGatewayTimeout, "server_error", "timeout",
		"the request took longer than the server or a header of the request allows: ask for fewer tokens")
	errFull = newError(http.StatusTooManyRequests, "rate_limit_error", "queue_full",
		"the queue is full: try again later")
	errLate = newError(http.StatusTooManyRequests, "rate_limit_error", "queue_full",
		"the queue is longer than this request may wait: try again later")
	errGone = newError(statusGone, "server_error", "client_gone", "the client disconnected")
)

// statusGone is the status, only in logs and metrics, of a request whose client went away.
const statusGone = 499

// errorOf returns err as the client sees it, with an overflow of the context in the words of its
// protocol. It gives no details of errors that are not the client's fault.
func errorOf(err error, param func(field string) string, overflow string) *apiError {
	var known *apiError
	var option *grove.OptionError
	var long *grove.ContextError
	var longer *longError
	var grammar *speculate.GrammarError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &option):
		return fieldError(param(option.Field), "%v", errors.New(option.Reason))
	case errors.As(err, &long):
		return overflowError(param("Prompt"), overflow, fmt.Sprint(long.Need), long.Limit)
	case errors.As(err, &longer):
		return overflowError(param("Prompt"), overflow, fmt.Sprint("at least ", longer.least), longer.most)
	case errors.As(err, &grammar):
		return fieldError(param("Grammar"), "%v", grammar)
	case errors.Is(err, engine.ErrFull):
		return errFull
	case errors.Is(err, engine.ErrClosed):
		return errStopped
	case errors.Is(err, context.Canceled):
		return errGone
	case errors.Is(err, context.DeadlineExceeded): // of a handler around the server
		return errTime
	}
	return newError(http.StatusInternalServerError, "server_error", "internal_error",
		"internal error: the server's log has it under the request's id")
}

func overflowError(field, format, tokens string, most int) *apiError {
	e := newError(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", format, tokens, most)
	e.Param = &field
	return e
}

// paramOf returns the body's name for a field of grove.Request.
func (c *call) paramOf(name string) string {
	switch {
	case name == "Prompt":
		return c.promptPath
	case name == "TopLogprobs":
		return c.logprobsPath
	case name == "Tools" || name == "Grammar" && c.constraint.param == "":
		return c.toolsPath
	case name == "Grammar" || name == "JSONSchema" || name == "Regex":
		return c.constraint.param
	}
	return c.options.pathOf(name)
}
