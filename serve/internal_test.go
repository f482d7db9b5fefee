package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/speculate"
	embedded "github.com/grovellm/grove/models"
)

// Accounts returns the counted bytes, and the bytes of the models that are loaded or being loaded.
func (s *Server) Accounts() (used, sum int64) {
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	for _, e := range s.models.list {
		if e.model != nil || e.loading != nil {
			sum += e.Bytes
		}
	}
	return s.models.used, sum
}

// Closing reports whether a model is being closed.
func (s *Server) Closing() bool {
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	select {
	case <-s.models.closing:
		return false
	default:
		return s.models.closing != nil
	}
}

// Users is the number of requests that use models or wait for them.
func (s *Server) Users() (n int) {
	s.models.each(func(e *entry) { n += e.users })
	return n
}

// The bit-parallel length equals that of the textbook's table.
func TestCommon(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Int32Range(0, 5), 0, 200)
		a, b := tokens.Draw(rt, "a"), tokens.Draw(rt, "b")
		row := make([]int, len(b)+1)
		for _, x := range a {
			corner := 0
			for j, y := range b {
				above := row[j+1]
				if x == y {
					row[j+1] = corner + 1
				} else {
					row[j+1] = max(above, row[j])
				}
				corner = above
			}
		}
		if got := common(a, b); got != row[len(b)] {
			rt.Fatalf("%d, want %d", got, row[len(b)])
		}
	})
}

// An engine is stuck only if it has work and its last step stays the last for a minute.
func TestLiveness(t *testing.T) {
	var l liveness
	start := time.Now()
	step := func(at int, busy bool, last int) bool {
		s := engine.Stats{LastStep: start.Add(time.Duration(last) * time.Second)}
		if busy {
			s.Running = 1
		}
		return l.alive(s, start.Add(time.Duration(at)*time.Second))
	}
	for i, c := range []struct {
		at   int
		busy bool
		last int
		want bool
	}{
		{0, false, 0, true}, {500, false, 0, true}, {1000, true, 0, true}, {1050, true, 0, true}, {1065, true, 0,
			false},
		{1070, true, 1069, true}, {1125, true, 1069, true}, {1131, true, 1069, false}, {1140, false, 1069,
			true}, {2000, true, 1069, true},
	} {
		if got := step(c.at, c.busy, c.last); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

// A request whose model was loaded, and closed with the server before the request could continue,
// is told that the server is stopping.
func TestClosedWhileWaiting(t *testing.T) {
	p := &models{o: &Options{}}
	e := &entry{Source: Source{Name: "m"}, loading: &loading{done: make(chan struct{})}}
	p.set([]*entry{e})
	ended := make(chan error, 1)
	go func() {
		m, _, err := p.use(context.Background(), "m")
		if err == nil && m == nil {
			err = errors.New("there is neither a model nor an error")
		}
		ended <- err
	}()
	for waits := false; !waits; {
		p.each(func(*entry) { waits = p.waiting == 1 })
	}
	p.mu.Lock() // as the load does, and then CloseModels, before the request continues
	l := e.loading
	e.loading, p.ended = nil, true
	close(l.done)
	p.mu.Unlock()
	if err := <-ended; err != errStopped {
		t.Error(err)
	}
	if e.users != 0 {
		t.Errorf("%d users are left", e.users)
	}
}

// Every drafter's option that names a file is one that requests may not set.
func TestFileOptionsAreRefused(t *testing.T) {
	found := 0
	for _, f := range registry.Families() {
		for _, o := range f.Listed() {
			if text := strings.ToLower(o.Help); strings.Contains(text, "file of") ||
				strings.Contains(text, "gguf") || strings.Contains(text, "folder") {
				found++
				for _, drafter := range []string{f.Name + ":" + o.Key + "=x", f.Name + ":min=2, " + o.Key + " =x",
					"merge:lookup+(" + f.Name + ":" + o.Key + "=x)", f.Name + ":" + o.Key + "\u00a0=x",
					f.Name + ":\u2003" + o.Key + "\v\u0085\u3000=x"} {
					if !namesFile.MatchString(drafter) && !(o.Key == "head") {
						t.Errorf("%s may be set: %s", drafter, o.Help)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d options", found)
	}
	for _, drafter := range []string{"eagle3:width=4,depth=10", "lookup:min=2", "jetspec:tree=ddtree",
		"merge:lookup+eagle3"} {
		if namesFile.MatchString(drafter) {
			t.Errorf("%s is refused", drafter)
		}
	}
}

// Drafters of one family share their series, except for the default; the sums include all.
func TestByDrafter(t *testing.T) {
	list := []drafterStats{
		{Name: "lookup", Stats: speculate.Stats{Rounds: 3, Accepted: 1}, Speedup: 1}, {Name: "lookup:min=2",
			Stats: speculate.Stats{Rounds: 5, Accepted: 2}, Speedup: 2},
		{Name: "eagle3:width=4", Stats: speculate.Stats{Rounds: 7}}, {Name: "eagle3",
			Stats: speculate.Stats{Rounds: 9}},
	}
	got := byDrafter(list, "eagle3:width=4")
	if len(got) != 3 || got[0].Name != "lookup" || got[0].Rounds != 8 || got[0].Accepted != 3 ||
		got[0].Speedup != 2 || got[1].Name != "eagle3:width=4" || got[2].Rounds != 9 {
		t.Errorf("%+v", got)
	}
}

// A certificate is read again when its files change, and kept while they cannot be read.
func TestCertificateIsReloaded(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(name string, number int64) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		x := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour),
			DNSNames: []string{name}}
		data, err := x509.CreateCertificate(rand.Reader, x, x, k.Public(), k)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: data},
			key: {Type: "PRIVATE KEY", Bytes: private}} {
			if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
				t.Fatal(err)
			}
			when := time.Now().Add(time.Duration(number) * time.Hour)
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := LoadTLS(cert, key, slog.Default()); err == nil {
		t.Error("files that are not there are taken")
	}
	write("one", 1)
	var log bytes.Buffer
	c, err := LoadTLS(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	name := func() []string {
		got, err := c.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.DNSNames
	}
	first := name()
	write("two", 2)
	second := name()
	if err := os.WriteFile(cert, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := name(); !reflect.DeepEqual([][]string{first, second, third}, [][]string{{"one"}, {"two"}, {"two"}}) {
		t.Error(first, second, third)
	}
	if again := name(); again[0] != "two" || strings.Count(log.String(), "cannot read") != 1 {
		t.Errorf("%q; each handshake logs that the certificate is none:\n%s", again, &log)
	}
}

// Gateways' headers give a priority and a deadline; the newer name of a header comes first, and a
// field before any header.
func TestOrderHeaders(t *testing.T) {
	began := time.Now()
	s := &Server{o: Options{Objectives: map[string]int{"chat": 2, "batch": -3}}}
	for _, c := range []struct {
		headers, body string
		priority      int
		deadline      time.Duration // 0: none
	}{
		{"", `{}`, 0, 0},
		{"X-Gateway-Inference-Objective: batch", `{}`, -3, 0},
		{"X-Llm-D-Inference-Objective: chat|X-Gateway-Inference-Objective: batch", `{}`, 2, 0},
		{"X-Gateway-Inference-Objective: other", `{}`, 0, 0},
		{"X-Gateway-Inference-Objective: batch", `{"priority": 9}`, 9, 0},
		{"X-Gateway-Inference-Objective: batch", `{"priority": 0}`, 0, 0},
		{"X-Slo-Ttft-Ms: 900", `{}`, 0, 900 * time.Millisecond},
		{"X-Llm-D-Slo-Ttft-Ms: 0.5|X-Slo-Ttft-Ms: 900", `{}`, 0, 500 * time.Microsecond},
		{"X-Slo-Ttft-Ms: -1", `{}`, 0, 0},
		{"X-Slo-Ttft-Ms: NaN", `{}`, 0, 0},
		{"X-Slo-Ttft-Ms: 1e300", `{}`, 0, 0},
		{"X-Slo-Ttft-Ms: soon", `{}`, 0, 0},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		for header := range strings.SplitSeq(c.headers, "|") {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		var o options
		if err := parseBody([]byte(c.body), &o); err != nil {
			t.Fatal(err)
		}
		var got grove.Request
		(&exchange{s: s, r: r, began: began}).setOrder(&o, &got)
		want := time.Time{}
		if c.deadline > 0 {
			want = began.Add(c.deadline)
		}
		if got.Priority != c.priority || !got.Deadline.Equal(want) || got.Tenant != "" {
			t.Errorf("%s with %s: %+v", c.headers, c.body, got)
		}
	}
}

// A key's first request starts after one of each other key, however many those have; if there are
// no others, its next one starts after all of its own.
func TestAhead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		waiting := rapid.MapOf(rapid.StringN(1, 2, -1), rapid.IntRange(1, 1000)).Draw(rt, "waiting")
		if n := ahead(waiting, ""); n != len(waiting) {
			rt.Errorf("%d start before a key's first one", n)
		}
		own := rapid.IntRange(0, 1000).Draw(rt, "own")
		waiting[""] = own
		if n := ahead(waiting, ""); n < own || n > own+(own+1)*(len(waiting)-1) || len(waiting) == 1 && n != own {
			rt.Errorf("%d start before a key's next one, of which %d wait", n, own)
		}
	})
}

// Retry-After is a whole number of 1 to 60 seconds, and about the time in which the requests that wait have started.
func TestRetryAfter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p pace
		took := time.Duration(rapid.Int64Range(1, int64(5*time.Minute)).Draw(rt, "took"))
		for range rapid.IntRange(1, 9).Draw(rt, "ended") {
			p.add(took)
		}
		running, waiting := rapid.IntRange(0, 100).Draw(rt, "running"), rapid.IntRange(0, 1000).Draw(rt, "waiting")
		wait := p.wait(running, waiting)
		want := took.Seconds() * float64(max(waiting, 1)) / float64(max(running, 1))
		n, err := strconv.Atoi(seconds(wait))
		if err != nil || n < 1 || n > 60 || float64(n) < min(want, 60)-0.001 || float64(n) > max(want, 1)+1 {
			rt.Fatalf("%d s, %v: want %.3f s", n, err, want)
		}
		if p.wait(running, waiting+1) < wait || p.wait(running+1, waiting) > wait {
			rt.Fatal("more requests wait for less time")
		}
	})
	var none pace
	if n := seconds(none.wait(1, 1)); n != "5" {
		t.Errorf("%s s where nothing was measured", n)
	}
}

// A right prediction is drafted from whatever drafter the server or the request names, unless the
// request names plain decoding.
func TestPredictionWithAnyDrafter(t *testing.T) {
	t.Parallel()
	m, err := grove.OpenGGUF("embedded", embedded.Target(), grove.Options{Threads: 1, DraftGGUF: embedded.Draft()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const prompt = "func main() {"
	run := func(r grove.Request) *grove.Result {
		r.MaxTokens = 60
		r.Sampling = grove.Sampling{Temperature: 1, Seed: 3}
		r.Uncontrolled = true
		got, err := grove.Collect(m.Generate(t.Context(), prompt, r))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := run(grove.Request{})
	for _, drafter := range []string{"", "plain", "auto", "lookup", "linear", "best-first+text",
		"merge:linear+best-first", "merge:mode=spliced,linear+(best-first+text)", "merge:linear+lookup"} {
		for _, named := range []bool{false, true} {
			c := call{model: &Model{Model: m, Drafter: drafter}, options: &options{}}
			c.options.Prediction.set(prediction{Content: content{plain.Text}})
			if named && drafter != "" {
				c.model.Drafter = "linear"
				c.options.Drafter.set(drafter)
			}
			if err := c.setDrafting(); err != nil {
				t.Fatal(err)
			}
			got := run(c.request)
			if got.Text != plain.Text {
				t.Errorf("%s: the text is another", c.request.Drafter)
			}
			if few, want := got.Stats.Rounds <= plain.Stats.Rounds/3, !(named && drafter == "plain"); few != want {
				t.Errorf("drafter %q, named by the request %v, becomes %q: %d rounds, plain decoding has %d", drafter, named,
					c.request.Drafter, got.Stats.Rounds, plain.Stats.Rounds)
			}
		}
	}
}

// Kept responses take no more than their bytes, and the most recently used stay longest.
func TestStoreHoldsItsBytes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		most := rapid.Int64Range(1, 4000).Draw(r, "bytes")
		s := newResponseStore(1000, most)
		for i := range rapid.IntRange(1, 40).Draw(r, "responses") {
			size := rapid.IntRange(0, 1000).Draw(r, "size")
			used := s.find("", "0")
			s.add(&storedResponse{id: fmt.Sprint(i), answer: make(json.RawMessage, size)})
			sum := int64(0)
			for _, kept := range s.byID {
				sum += int64(len(kept.answer))
			}
			if sum != s.bytes || sum > most || len(s.byID) != s.order.Len() {
				r.Fatalf("%d bytes in %d responses, counted as %d in %d, of %d", sum, len(s.byID), s.bytes, s.order.Len(), most)
			}
			if last := s.find("", fmt.Sprint(i)); (last != nil) != (int64(size) <= most) {
				r.Fatalf("of %d bytes the last, of %d, is kept: %t", most, size, last != nil)
			}
			if i > 0 && used != nil && used.bytes+int64(size) <= most && s.find("", "0") == nil {
				r.Fatal("what was used last does not stay longest")
			}
		}
	})
}
