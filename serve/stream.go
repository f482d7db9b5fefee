package serve

import (
	"net/http"
	"time"
)

// headTime is how long a stream without text yet, such as that of a queued request, waits before it
// sends its headers. Errors that are known before then get a status of their own.
const headTime = time.Second

// stream sends pieces of the answer as they come.
func (a *answering) stream(parts <-chan part) error {
	ping, head := time.NewTicker(a.s.o.Ping), time.NewTimer(headTime)
	defer ping.Stop()
	defer head.Stop()
	for left := len(a.choices); left > 0; {
		var p part
		select {
		case <-head.C:
			if a.status == 0 {
				if err := a.sendText(a.protocol.ping); err != nil {
					return err
				}
			}
			continue
		case <-ping.C:
			if err := a.sendText(a.protocol.ping); err != nil {
				return err
			}
			continue
		case next, ok := <-parts:
			if !ok {
				return a.abort(a.early())
			}
			p = next
		}
		text, list, err := a.take(&p)
		if err != nil {
			return a.abort(err)
		}
		if a.choices[p.index].result != nil {
			left--
		}
		piece := a.piece(p.index, text, p.chunk.Tokens, list)
		piece.round = a.call.roundOf(&p)
		if err := a.send(a.form.events(&piece, left == 0)); err != nil {
			return err
		}
	}
	if a.protocol.done == "" { // the last event marked the end
		return nil
	}
	return a.sendText(a.protocol.done)
}

// failing is a form that has an event for errors.
type failing interface{ failed(e *apiError) event }

// abort reports an error to the client: as an answer if none has begun, otherwise as an event.
func (a *answering) abort(err error) error {
	if e := a.errorOf(err); a.status != 0 && e != errGone {
		failed := event{a.protocol.errorEvent, a.protocol.errorBody(a.exchange, e)}
		if f, ok := a.form.(failing); ok {
			failed = f.failed(e)
		}
		_ = a.send([]event{failed})
	}
	return err
}

// send writes events and flushes them.
func (a *answering) send(list []event) error {
	for _, e := range list {
		data, err := marshal(e.data) // ends with a newline
		if err != nil {
			return err
		}
		text := string(data)
		if !a.protocol.lines {
			text = "data: " + text + "\n"
			if e.name != "" {
				text = "event: " + e.name + "\n" + text
			}
		}
		if err := a.write(text); err != nil {
			return err
		}
	}
	if len(list) == 0 { // part of a character makes no event
		return nil
	}
	return a.flush()
}

// sendText writes text and flushes it. Without text it sends only the headers.
func (a *answering) sendText(text string) error {
	if err := a.write(text); err != nil {
		return err
	}
	return a.flush()
}

func (a *answering) write(text string) error {
	if a.status == 0 {
		h := a.Header()
		h.Set("Content-Type", "text/event-stream")
		if a.protocol.lines {
			h.Set("Content-Type", "application/x-ndjson")
		}
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // makes proxies pass on each event
		a.WriteHeader(http.StatusOK)
	}
	_, err := a.Write([]byte(text))
	return err
}
