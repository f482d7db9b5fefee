package serve

import (
	"net/http"
	"time"
)

// headTime is how long a stream without text, such as that of a request in the queue, waits with
// its headers. What is wrong with a request is known before, and has a status of its own then.
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
	if a.protocol.done == "" { // the last event was the end
		return nil
	}
	return a.sendText(a.protocol.done)
}

// failing is a form that has an event for errors.
type failing interface{ failed(e *apiError) event }

// abort tells the client of an error: as an answer where none has begun, as an event otherwise.
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

// send writes events and sends them on their way.
func (a *answering) send(list []event) error {
	for _, e := range list {
		data, err := marshal(e.data) // with a line's end
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
	if len(list) == 0 { // a part of a character is none
		return nil
	}
	return a.flush()
}

// sendText writes text, and sends it on its way: the headers alone where there is none.
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
		h.Set("X-Accel-Buffering", "no") // proxies pass each event on
		a.WriteHeader(http.StatusOK)
	}
	_, err := a.Write([]byte(text))
	return err
}
