package serve

import (
	"container/list"
	"encoding/json"
	"net/http"
	"sync"
)

// responseStore keeps the last responses, for requests that go on from one or name an item of one. It
// is bounded by count and by bytes; the least recently used go first.
type responseStore struct {
	mu          sync.Mutex
	most        int
	mostBytes   int64
	bytes       int64
	order       *list.List // of *storedResponse, the last used at the front
	byID, items map[string]*storedResponse
}

// storedResponse is a response with the input that was new in its request.
type storedResponse struct {
	id, tenant, previous string
	input                []json.RawMessage // items
	answer               json.RawMessage
	output               []storedItem
	bytes                int64
	at                   *list.Element
}

type storedItem struct {
	id  string
	raw json.RawMessage
}

func newResponseStore(most int, mostBytes int64) *responseStore {
	return &responseStore{most: most, mostBytes: mostBytes, order: list.New(), byID: map[string]*storedResponse{},
		items: map[string]*storedResponse{}}
}

// add keeps a response, unless it is larger than all may be together.
func (s *responseStore) add(r *storedResponse) {
	r.bytes = int64(len(r.answer))
	for _, item := range r.output {
		r.bytes += int64(len(item.raw))
	}
	for _, raw := range r.input {
		r.bytes += int64(len(raw))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.at = s.order.PushFront(r)
	s.byID[r.id] = r
	s.bytes += r.bytes
	for _, item := range r.output {
		s.items[item.id] = r
	}
	for s.bytes > s.mostBytes || s.order.Len() > s.most {
		s.drop(s.order.Back().Value.(*storedResponse))
	}
}

func (s *responseStore) drop(r *storedResponse) {
	s.order.Remove(r.at)
	delete(s.byID, r.id)
	for _, item := range r.output {
		delete(s.items, item.id)
	}
	s.bytes -= r.bytes
}

// find returns a tenant's response.
func (s *responseStore) find(tenant, id string) *storedResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(s.byID[id], tenant)
}

// use notes that a response is used. Those of other tenants are none.
func (s *responseStore) use(r *storedResponse, tenant string) *storedResponse {
	if r == nil || r.tenant != tenant {
		return nil
	}
	s.order.MoveToFront(r.at)
	return r
}

// item returns an item of a tenant's responses.
func (s *responseStore) item(tenant, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.use(s.items[id], tenant); r != nil {
		for _, item := range r.output {
			if item.id == id {
				return item.raw, true
			}
		}
	}
	return nil, false
}

// conversation returns the items up to and with a response's, the first one first. missing is the
// response that is not there; empty where all are.
func (s *responseStore) conversation(tenant, id string) (items []json.RawMessage, missing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chain []*storedResponse
	for id != "" {
		r := s.use(s.byID[id], tenant)
		if r == nil {
			return nil, id
		}
		chain, id = append(chain, r), r.previous
	}
	for i := len(chain) - 1; i >= 0; i-- {
		items = append(items, chain[i].input...)
		for _, item := range chain[i].output {
			items = append(items, item.raw)
		}
	}
	return items, ""
}

const unstored = "this server stores no responses: send the whole conversation as input"

// items are those of the stored responses that a request goes on from, and then those of its input, in
// which items that are named stand in the place of their names.
func (b *responseBody) items(s *responseStore, tenant string) (list []inputItem, err error) {
	d := &decoder{elements: len(b.Input.value)}
	switch {
	case b.Previous.given && s == nil:
		return nil, b.Previous.fail(unstored)
	case b.Previous.value != "":
		items, missing := s.conversation(tenant, b.Previous.value)
		if missing != "" {
			return nil, b.Previous.fail("there is no response %q: this server keeps the last ones alone."+
				" Send the whole conversation as input", missing)
		}
		for _, raw := range items {
			var item inputItem
			if err := d.count(b.Previous.path); err != nil {
				return nil, err
			}
			if err := item.readJSON(d, b.Previous.path, raw); err != nil {
				return nil, err
			}
			list = append(list, item)
		}
	}
	for i := range b.Input.value {
		item := &b.Input.value[i]
		if item.isReference() {
			err = item.resolve(d, s, tenant)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *item)
	}
	return list, nil
}

// resolve puts the item that a reference names in its place.
func (i *inputItem) resolve(d *decoder, s *responseStore, tenant string) error {
	if s == nil {
		return i.Type.fail("%q: %s", "item_reference", unstored)
	}
	raw, ok := s.item(tenant, i.ID.value)
	if !ok {
		return i.ID.fail("there is no item %q: this server keeps the last responses alone. Send the item itself", i.ID.value)
	}
	return i.readJSON(d, i.path, raw)
}

// stored returns the response that a path names.
func (x *exchange) stored() (*storedResponse, error) {
	id := x.r.PathValue("id")
	if x.s.stored != nil {
		if r := x.s.stored.find(x.tenant, id); r != nil {
			return r, nil
		}
	}
	return nil, newError(http.StatusNotFound, "invalid_request_error", "not_found",
		"Response with id '%s' not found: this server keeps the last ones alone", id)
}

// oneResponse answers GET /v1/responses/{id}.
func (s *Server) oneResponse(x *exchange) error {
	r, err := x.stored()
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, r.answer)
}

// deletedResponse is the answer where one is deleted.
type deletedResponse struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(x *exchange) error {
	r, err := x.stored()
	if err != nil {
		return err
	}
	s.stored.mu.Lock()
	defer s.stored.mu.Unlock()
	if s.stored.byID[r.id] == r {
		s.stored.drop(r)
	}
	return x.writeJSON(http.StatusOK, deletedResponse{r.id, "response", true})
}
