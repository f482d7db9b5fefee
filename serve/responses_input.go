package serve

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// GET /v1/responses/{id}/input_items.

// stored returns an item of a request in the form in which answers show it. It has the id if it has none.
func (i *inputItem) stored(id string) storedItem {
	fields, _ := decode[map[string]json.RawMessage](i.raw)
	put := func(name, value string) {
		if fields[name] == nil || isNull(fields[name]) {
			fields[name], _ = json.Marshal(value)
		}
	}
	given := i.ID.given
	put("id", id)
	put("type", "message")
	if kind := i.Type.or("message"); kind == "message" || strings.Contains(kind, "_call") {
		put("status", "completed")
	}
	if text, isText := decode[string](fields["content"]); isText {
		part := any(contentText{"input_text", text})
		if i.Role.value == "assistant" {
			part = textPart{"output_text", text, []any{}, []chatLogprob{}}
		}
		fields["content"], _ = marshal([]any{part})
	}
	raw, _ := marshal(fields)
	item := storedItem{id, bytes.TrimSpace(raw)}
	if given {
		item.id = ""
	}
	return item
}

// contentText is a part of a message that is text.
type contentText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// itemList is a page of items.
type itemList struct {
	Object string            `json:"object"`
	Data   []json.RawMessage `json:"data"`
	First  *string           `json:"first_id"`
	Last   *string           `json:"last_id"`
	More   bool              `json:"has_more"`
}

// listInput answers GET /v1/responses/{id}/input_items: with the items that the response was made from, also those of
// the responses that it continues, the latest first. An item that a reference repeats is listed once.
func (s *Server) listInput(x *exchange) error {
	r, err := x.stored()
	if err != nil {
		return err
	}
	chain, missing := s.stored.chain(x.tenant, r.previous)
	if missing != "" {
		return noResponse(missing)
	}
	var items []storedItem
	for _, earlier := range chain {
		items = append(items, earlier.items()...)
	}
	var list []json.RawMessage
	known := map[string]bool{}
	for _, item := range append(items, r.input...) {
		if id := idOf(item.raw); !known[id] { // pages are found by ids
			known[id] = true
			list = append(list, item.raw)
		}
	}
	page, err := pageOf(list, x.r.URL.Query().Get)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, page)
}

func idOf(item json.RawMessage) string {
	fields, _ := decode[struct{ ID string }](item)
	return fields.ID
}

// pageOf returns the part of a list that a query asks for.
func pageOf(list []json.RawMessage, query func(name string) string) (*itemList, error) {
	switch order := query("order"); order {
	case "", "desc":
		slices.Reverse(list)
	case "asc":
	default:
		return nil, fieldError("order", "%q: want asc or desc", order)
	}
	if after := query("after"); after != "" {
		at := slices.IndexFunc(list, func(raw json.RawMessage) bool { return idOf(raw) == after })
		if at < 0 {
			return nil, fieldError("after", "%q: the response has no such item", after)
		}
		list = list[at+1:]
	}
	limit := 20
	if text := query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, fieldError("limit", "%q: want 1 to 100", text)
		}
		limit = n
	}
	page := &itemList{Object: "list", Data: []json.RawMessage{}, More: len(list) > limit}
	page.Data = append(page.Data, list[:min(limit, len(list))]...)
	if n := len(page.Data); n > 0 {
		page.First = orNil(idOf(page.Data[0]))
		page.Last = orNil(idOf(page.Data[n-1]))
	}
	return page, nil
}

// compact refuses POST /v1/responses/compact.
func (s *Server) compact(*exchange) error {
	return newError(http.StatusNotImplemented, "invalid_request_error", "not_supported",
		"this server does not compact conversations: let the client summarize, or set truncation to auto")
}
