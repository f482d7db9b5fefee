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
func (s *responseStore) add(r *storedResponse, answer any) {
	var err error
	if r.answer, err = marshal(answer); err != nil {
		return
	}
	parts, _ := decode[struct{ Output []json.RawMessage }](r.answer)
	for _, raw := range parts.Output {
		in, _ := decode[struct{ ID string }](raw)
		r.output = append(r.output, storedItem{in.ID, raw})
		r.bytes += int64(len(raw))
	}
	r.bytes += int64(len(r.answer))
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

// readStored replaces what a request names of stored responses by their items. It returns the items
// that are new in the request.
func (o *object) readStored(s *responseStore, tenant string) (fresh []json.RawMessage) {
	if s == nil {
		o.refuse("previous_response_id", unstored)
	}
	var list []*object
	previous := ""
	if o.read("previous_response_id", &previous) && previous != "" {
		items, missing := s.conversation(tenant, previous)
		if missing != "" {
			o.fail("previous_response_id", "there is no response %q: this server keeps the last ones alone. Send the whole conversation as input", missing)
		}
		for _, raw := range items {
			in := &object{path: o.path + "previous_response_id."}
			_ = json.Unmarshal(raw, &in.fields) // it was an object when it was stored
			list = append(list, in)
		}
	}
	if text, ok := decode[string](o.fields["input"]); ok {
		in := newObject("input")
		in.put("role", "user")
		in.put("content", text)
		o.lists = map[string][]*object{"input": {in}}
	}
	for _, in := range o.objects("input") {
		in.readReference(s, tenant)
		list = append(list, in)
		raw, _ := json.Marshal(in.fields)
		fresh = append(fresh, raw)
	}
	if o.err == nil {
		o.putList("input", list)
	}
	return fresh
}

// readReference puts the item that a reference names in its place.
func (o *object) readReference(s *responseStore, tenant string) {
	kind, id := "", ""
	o.read("type", &kind)
	if kind != "item_reference" && (kind != "" || o.has("role") || !o.has("id")) {
		return
	}
	o.read("id", &id)
	if s == nil {
		o.fail("type", "%q: %s", "item_reference", unstored)
		return
	}
	raw, ok := s.item(tenant, id)
	if !ok {
		o.fail("id", "there is no item %q: this server keeps the last responses alone. Send the item itself", id)
		return
	}
	o.fields = map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &o.fields)
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
	return x.writeJSON(http.StatusOK, map[string]any{"id": r.id, "object": "response", "deleted": true})
}
