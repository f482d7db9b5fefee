package serve

import (
	"encoding/json"
	"net/http"
	"time"
)

// stream sends pieces of the answer as server-sent events, as they come.
func (a *answering) stream(parts <-chan part) error {
	ping := time.NewTicker(a.s.o.Ping)
	defer ping.Stop()
	for left := len(a.choices); left > 0; {
		var p part
		select {
		case <-ping.C:
			if err := a.event(": still running\n\n"); err != nil {
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
		c := &a.choices[p.index]
		if !c.begun {
			text = a.echoed(p.index) + text
		}
		if c.result != nil {
			left--
		}
		pieces := a.form.pieces(p.index, text, list, c.result, !c.begun)
		c.begun = true
		round := a.call.roundOf(&p)
		if len(pieces) == 0 && round != nil {
			pieces = append(pieces, nil)
		}
		for i, piece := range pieces {
			r := a.head
			if r.Choices = []any{piece}; piece == nil {
				r.Choices = []any{}
			}
			if i == 0 {
				r.Round = round
			}
			if a.call.usage {
				r.Usage = json.RawMessage("null")
			} else if left == 0 && i == len(pieces)-1 {
				r.Timings, r.Metrics = a.timings(), a.metric()
			}
			if err := a.send(&r); err != nil {
				return err
			}
		}
		if len(pieces) > 0 { // a part of a character is none
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	if a.call.usage {
		r := a.head
		r.Choices = []any{}
		r.Usage, r.Timings, r.Metrics = a.usage(), a.timings(), a.metric()
		if err := a.send(&r); err != nil {
			return err
		}
	}
	return a.event("data: [DONE]\n\n")
}

// abort tells the client of an error: as an answer where none has begun, as an event otherwise.
func (a *answering) abort(err error) error {
	if e := a.errorOf(err); a.status != 0 && e != errGone {
		if sent := a.send(errorBody{e}); sent == nil {
			_ = a.flush()
		}
	}
	return err
}

// send writes an event.
func (a *answering) send(v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	return a.write("data: " + string(data) + "\n")
}

// event writes text and sends it on its way.
func (a *answering) event(text string) error {
	if err := a.write(text); err != nil {
		return err
	}
	return a.flush()
}

func (a *answering) write(text string) error {
	if a.status == 0 {
		h := a.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies pass each event on
		a.WriteHeader(http.StatusOK)
	}
	_, err := a.Write([]byte(text))
	return err
}

func (a *answering) flush() error { return a.control.Flush() }
