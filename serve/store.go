package serve

import (
	"cmp"
	"container/list"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// responseStore keeps recent responses, for requests that continue one or refer to an item of one.
// It is bounded by count and by bytes; the least recently used are dropped first.
type responseStore struct {
	mu          sync.Mutex
	most        int
	mostBytes   int64
	bytes       int64
	order       *list.List // of *storedResponse, the most recently used first
	byID, items map[string]*storedResponse
}

// storedResponse is a response with the new input of its request.
type storedResponse struct {
	id, tenant, previous string
	input                []storedItem
	answer               json.RawMessage
	output               []storedItem
	bytes                int64
	at                   *list.Element
}

type storedItem struct {
	id  string // empty if the client chose it
	raw json.RawMessage
}

// items returns all items of the response, those of its request first.
func (r *storedResponse) items() []storedItem { return slices.Concat(r.input, r.output) }

func newResponseStore(most int, mostBytes int64) *responseStore {
	return &responseStore{most: most, mostBytes: mostBytes, order: list.New(), byID: map[string]*storedResponse{},
		items: map[string]*storedResponse{}}
}

// add keeps a response, unless it alone exceeds the limit in bytes.
func (s *responseStore) add(r *storedResponse) {
	r.bytes = int64(len(r.answer))
	for _, item := range r.items() {
		r.bytes += int64(len(item.raw))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.at = s.order.PushFront(r)
	s.byID[r.id] = r
	s.bytes += r.bytes
	for _, item := range r.items() {
		if item.id != "" {
			s.items[item.id] = r
		}
	}
	for s.bytes > s.mostBytes || s.order.Len() > s.most {
		s.drop(s.order.Back().Value.(*storedResponse))
	}
}

func (s *responseStore) drop(r *storedResponse) {
	s.order.Remove(r.at)
	delete(s.byID, r.id)
	for _, item := range r.items() {
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

// use marks a response as used. It returns nil for another tenant's.
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
		for _, item := range r.items() {
			if item.id == id {
				return item.raw, true
			}
		}
	}
	return nil, false
}

// chain returns a response and those that it continues, the oldest first. missing is the id that is
// not there, or empty.
func (s *responseStore) chain(tenant, id string) (list []*storedResponse, missing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id != "" {
		r := s.use(s.byID[id], tenant)
		if r == nil {
			return nil, id
		}
		list, id = append(list, r), r.previous
	}
	slices.Reverse(list)
	return list, ""
}

const unstored = "this server stores no responses: send the whole conversation as input"

// bringing brings stored items into a request.
type bringing struct {
	decoder
	store  *responseStore
	tenant string
	most   int64                 // bytes of all together
	known  map[string]*inputItem // items that references named, by id
}

// add counts the bytes of an item that f has brought in.
func (b *bringing) add(f *field[string], item json.RawMessage) error {
	b.most -= int64(len(item))
	if b.most < 0 {
		return f.fail("the stored items of this request take more bytes than a body may have: refer to fewer")
	}
	return nil
}

// items returns the items of the stored responses that a request continues, followed by those of its input,
// with references replaced by the items that they name. Stored items have at most most bytes in all.
func (b *responseBody) items(s *responseStore, tenant string, most int64) (list []inputItem, err error) {
	stored := &bringing{decoder{len(b.Input.value)}, s, tenant, most, map[string]*inputItem{}}
	switch {
	case b.Previous.given && s == nil:
		return nil, b.Previous.fail(unstored)
	case b.Previous.value != "":
		if list, err = stored.from(&b.Previous); err != nil {
			return nil, err
		}
	}
	for i := range b.Input.value {
		item := &b.Input.value[i]
		if item.isReference() {
			err = stored.resolve(item)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *item)
	}
	return list, nil
}

// from returns the items up to and including those of the response that f names.
func (b *bringing) from(f *field[string]) (list []inputItem, err error) {
	chain, missing := b.store.chain(b.tenant, f.value)
	if missing != "" {
		return nil, f.fail("there is no response %q: this server keeps only the most recent ones."+
			" Send the whole conversation as input", missing)
	}
	for _, r := range chain {
		for _, kept := range r.items() {
			var item inputItem
			err := cmp.Or(b.add(f, kept.raw), b.count(f.path))
			if err == nil {
				err = item.readJSON(&b.decoder, f.path, kept.raw)
			}
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
	}
	return list, nil
}

// resolve replaces a reference by the item that it names. It reads an item only once, however often it is named.
func (b *bringing) resolve(i *inputItem) error {
	if b.store == nil {
		return i.Type.fail("%q: %s", "item_reference", unstored)
	}
	id, path := i.ID, i.path
	item := b.known[id.value]
	if item == nil {
		raw, ok := b.store.item(b.tenant, id.value)
		if !ok {
			return id.fail("there is no item %q: this server keeps only the most recent responses: send the item itself", id.value)
		}
		item = new(inputItem)
		if err := item.readJSON(&b.decoder, path, raw); err != nil {
			return err
		}
		b.known[id.value] = item
	}
	*i = *item
	i.path = path
	return b.add(&id, item.raw)
}

// stored returns the response that a path names.
func (x *exchange) stored() (*storedResponse, error) {
	id := x.r.PathValue("id")
	if x.s.stored != nil {
		if r := x.s.stored.find(x.tenant, id); r != nil {
			return r, nil
		}
	}
	return nil, noResponse(id)
}

func noResponse(id string) error {
	return newError(http.StatusNotFound, "invalid_request_error", "not_found",
		"Response with id '%s' not found: this server keeps only the most recent ones", id)
}

// oneResponse answers GET /v1/responses/{id}.
func (s *Server) oneResponse(x *exchange) error {
	r, err := x.stored()
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, r.answer)
}

// deletedResponse is the answer after one is deleted.
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
	if s.stored.byID[r.id] == r {
		s.stored.drop(r)
	}
	s.stored.mu.Unlock()
	return x.writeJSON(http.StatusOK, deletedResponse{r.id, "response", true})
}
