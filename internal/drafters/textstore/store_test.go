package textstore

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
)

func must[T any](v T, err error) func(t interface{ Fatal(...any) }) T {
	return func(t interface{ Fatal(...any) }) T {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// kept is a text as the tests record it.
type kept struct{ context, tokens []int32 }

func genTokens(r *rapid.T, most int) []int32 {
	letters := rapid.Int32Range(0, rapid.SampledFrom([]int32{0, 1, 3, 1000}).Draw(r, "alphabet"))
	n := rapid.IntRange(0, most).Draw(r, "length")
	return rapid.SliceOfN(letters, n, n).Draw(r, "tokens")
}

// search returns what Matches must find, by searching everywhere: the lengths of the longest
// matches, and all continuations by length.
func search(all []kept, text []int32, least int) (lengths []int, next map[int][]string) {
	next = map[int][]string{}
	for _, k := range all {
		context := k.context[max(0, len(k.context)-MatchMost):]
		whole := slices.Concat(context, k.tokens)
		for at := len(context); at < len(whole); at++ {
			n := 0
			for n < MatchMost && n < at && n < len(text) && whole[at-1-n] == text[len(text)-1-n] {
				n++
			}
			if n >= least {
				lengths = append(lengths, n)
				next[n] = append(next[n], fmt.Sprint(whole[at:min(at+NextMost, len(whole))]))
			}
		}
	}
	slices.SortFunc(lengths, func(a, b int) int { return cmp.Compare(b, a) })
	return lengths, next
}

// Matches are the longest ones that a search of all texts finds, before the store is closed and after it is reopened.
func TestMatchesAreTheLongest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := must(os.MkdirTemp(t.TempDir(), "*"))(r)
		s := must(Open(dir, 0))(r)
		defer func() { s.Close() }()
		var all []kept
		for range rapid.IntRange(0, 12).Draw(r, "texts") {
			k := kept{genTokens(r, 50), genTokens(r, 120)}
			if err := s.Add(k.context, k.tokens); err != nil {
				r.Fatal(err)
			}
			all = append(all, k)
		}
		if rapid.Bool().Draw(r, "reopened") {
			if err := s.Close(); err != nil {
				r.Fatal(err)
			}
			s = must(Open(dir, 0))(r)
		}
		if err := s.Wait(); err != nil {
			r.Fatal(err)
		}
		for range 5 {
			text := genTokens(r, 60)
			if len(all) > 0 && rapid.Bool().Draw(r, "known") {
				text = all[rapid.IntRange(0, len(all)-1).Draw(r, "of")].tokens
				text = text[:rapid.IntRange(0, len(text)).Draw(r, "part")]
			}
			least, most := rapid.IntRange(1, 4).Draw(r, "least"), rapid.IntRange(0, 30).Draw(r, "most")
			got := s.Matches(nil, text, least, most)
			lengths, next := search(all, text, least)
			lengths = lengths[:min(len(lengths), most)]
			if len(got) != len(lengths) {
				r.Fatalf("%d matches, want %d", len(got), len(lengths))
			}
			for i, m := range got {
				if m.Length != lengths[i] {
					r.Fatalf("match %d is of %d tokens, want %d", i, m.Length, lengths[i])
				}
				at := slices.Index(next[m.Length], fmt.Sprint(m.Next))
				if at < 0 {
					r.Fatalf("match %d of %d tokens goes on with %v, want one of %v", i, m.Length, m.Next, next[m.Length])
				}
				next[m.Length] = slices.Delete(next[m.Length], at, at+1)
			}
		}
	})
}

// Of equal matches the newest comes first.
func TestNewestFirst(t *testing.T) {
	s := must(Open("", 0))(t)
	for i := range int32(20) {
		if err := s.Add([]int32{1, 2, 3}, []int32{100 + i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, m := range s.Matches(nil, []int32{1, 2, 3}, 1, 5) {
		if want := int32(119 - i); m.Next[0] != want || m.Length != 3 {
			t.Errorf("match %d is of %d tokens and goes on with %d, want 3 and %d", i, m.Length, m.Next[0], want)
		}
	}
}

// A store stays within its size, also on disk, and keeps the newest texts.
func TestOldestGo(t *testing.T) {
	const most, each = 8 * fileTokens, 1 << 14
	dir := t.TempDir()
	s := must(Open(dir, most))(t)
	rng := rand.New(rand.NewPCG(1, 1))
	var last []int32
	for range 100 {
		last = make([]int32, each)
		for i := range last {
			last[i] = rng.Int32N(5000)
		}
		if err := s.Add(nil, last); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = must(Open(dir, most))(t)
	defer s.Close()
	if n := s.Tokens(); n > most || n < most*3/4 {
		t.Errorf("%d tokens are kept, want at most %d and about as many", n, most)
	}
	if m := s.Matches(nil, last[:each/2], 1, 1); len(m) != 1 || m[0].Length != MatchMost ||
		!slices.Equal(m[0].Next, last[each/2:][:NextMost]) {
		t.Errorf("the last text is not found: %v", m)
	}
	size := int64(0)
	for _, f := range must(os.ReadDir(dir))(t) {
		size += must(f.Info())(t).Size()
	}
	if size > 9*most {
		t.Errorf("the files take %d bytes for %d tokens", size, s.Tokens())
	}
	if b := s.Bytes(); b > 32*s.Tokens() {
		t.Errorf("%d bytes for %d tokens", b, s.Tokens())
	}
}

// A small store has small files, including the log, and keeps a part of its texts when the oldest are dropped.
func TestSmallStore(t *testing.T) {
	const most, each = 4000, 50
	dir := t.TempDir()
	s := must(Open(dir, most))(t)
	for i := range int32(2000) {
		tokens := make([]int32, each)
		for k := range tokens {
			tokens[k] = i*each + int32(k)
		}
		if err := errors.Join(s.Add(nil, tokens), s.Wait()); err != nil {
			t.Fatal(err)
		}
		if n := s.Tokens(); n > most || int(i)*each > most && n < most/2 {
			t.Errorf("%d tokens are kept after %d texts, want at most %d and about as many", n, i+1, most)
		}
	}
	size := int64(0)
	for _, f := range must(os.ReadDir(dir))(t) {
		size += must(f.Info())(t).Size()
	}
	if size > 12*most {
		t.Errorf("the files take %d bytes for %d tokens", size, s.Tokens())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = must(Open(dir, most))(t)
	defer s.Close()
	if n := s.Tokens(); n > most || n < most/2 {
		t.Errorf("%d tokens are kept in the folder, want at most %d and about as many", n, most)
	}
}

// Short texts take no more memory than long ones, although each keeps the tokens before it.
func TestMemoryOfShortTexts(t *testing.T) {
	const most = 50_000
	s := must(Open("", most))(t)
	context := make([]int32, MatchMost)
	for i := range int32(40_000) {
		if err := s.Add(context, []int32{i, i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b := s.Bytes(); b > 9*most || b < 4*most {
		t.Errorf("the texts take %d bytes, want about %d", b, 8*most)
	}
}

// A process that adds texts is killed at random moments. All texts that it had added before are there.
func TestKilled(t *testing.T) {
	const variable = "MEMORY_TEST_DIR"
	make := func(i int) []int32 { // a distinguishable text
		tokens := make([]int32, 3000)
		for k := range tokens {
			tokens[k] = int32(i*7919 + k*k)
		}
		return tokens
	}
	if dir := os.Getenv(variable); dir != "" { // the process
		s := must(Open(dir, 0))(t)
		for i := int(s.number); ; i++ {
			if err := s.Add(nil, make(i)); err != nil {
				t.Fatal(err)
			}
			fmt.Println("added", i)
		}
	}
	dir := t.TempDir()
	last := -1
	for kill := range 6 {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), variable+"="+dir)
		out, err := c.StdoutPipe()
		if err = errors.Join(err, c.Start()); err != nil {
			t.Fatal(err)
		}
		lines, texts := bufio.NewScanner(out), 10+rand.IntN(60)
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			if _, err := fmt.Sscanf(lines.Text(), "added %d", &last); err != nil {
				t.Fatalf("the process says %q", lines.Text())
			}
			return true
		}
		for read() && texts > 0 {
			texts--
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		_ = c.Wait()
		s := must(Open(dir, 0))(t)
		for i := range last + 1 {
			text := make(i)
			if m := s.Matches(nil, text[:MatchMost], MatchMost, 1); len(m) != 1 ||
				!slices.Equal(m[0].Next, text[MatchMost:][:NextMost]) {
				t.Fatalf("kill %d: text %d of %d is lost", kill, i, last)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, f := range must(os.ReadDir(dir))(t) {
			if strings.Contains(f.Name(), ".tmp-") {
				t.Errorf("kill %d left %s", kill, f.Name())
			}
		}
	}
}

// Only one process at a time has a store, and a closed store accepts nothing.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := must(Open(dir, 0))(t)
	if _, err := Open(dir, 0); err == nil {
		t.Error("a store was opened twice")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(nil, []int32{1}); err == nil {
		t.Error("a closed store took a text")
	}
	if _, err := Open(dir, -1); err == nil {
		t.Error("a store of -1 tokens was opened")
	}
}

// A damaged segment is refused by name, and a log that was cut off gives the texts before the cut.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := must(os.MkdirTemp(t.TempDir(), "*"))(r)
		p := newSegment(3, genTokens(r, 200), 0)
		if err := p.write(dir); err != nil {
			r.Fatal(err)
		}
		data := must(os.ReadFile(p.path(dir)))(r)
		at := rapid.IntRange(0, len(data)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "cut") {
			data = data[:at]
		} else {
			data[at] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		}
		if err := os.WriteFile(p.path(dir), data, 0o666); err != nil {
			r.Fatal(err)
		}
		if _, err := Open(dir, 0); err == nil || !strings.Contains(err.Error(), filepath.Base(p.path(dir))) {
			r.Fatalf("a damaged segment: %v", err)
		}
		if err := os.Remove(p.path(dir)); err != nil {
			r.Fatal(err)
		}

		var log []byte
		var ends []int
		for i := range rapid.IntRange(1, 6).Draw(r, "texts") {
			t := text{number: int64(i), tokens: append(genTokens(r, 20), int32(i))}
			log = t.append(log)
			ends = append(ends, len(log))
		}
		cut := rapid.IntRange(0, len(log)).Draw(r, "log cut")
		if err := os.WriteFile(filepath.Join(dir, "log"), log[:cut], 0o666); err != nil {
			r.Fatal(err)
		}
		s := must(Open(dir, 0))(r)
		defer s.Close()
		want := len(ends)
		for want > 0 && ends[want-1] > cut {
			want--
		}
		if got := len(*s.segments.Load()); got != want || s.number != int64(want) {
			r.Fatalf("%d texts of %d, the next is %d; want %d", got, len(ends), s.number, want)
		}
	})
}

// FuzzSegment reads files with any contents.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	p := newSegment(0, []int32{1, 2, 3, 1, 2}, 1)
	if err := p.write(dir); err != nil {
		f.Fatal(err)
	}
	f.Add(must(os.ReadFile(p.path(dir)))(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &segment{to: 1}
		if s.decode(data) == nil {
			s.match(nil, []int32{1, 2, 3}, 1, 10)
		}
	})
}

// BenchmarkMatches looks up the ends of texts in a full store.
func BenchmarkMatches(b *testing.B) {
	s := must(Open("", 0))(b)
	rng := rand.New(rand.NewPCG(1, 1))
	var last []int32
	for s.number < DefaultTokens/5000 {
		last = make([]int32, 5000)
		for i := range last {
			last[i] = int32(rng.ExpFloat64() * 500)
		}
		if err := errors.Join(s.Add(nil, last), s.Wait()); err != nil {
			b.Fatal(err)
		}
	}
	var m []draft.Match
	for b.Loop() {
		at := 40 + rng.IntN(4000)
		m = s.Matches(m[:0], last[:at], 2, 48)
	}
	b.ReportMetric(float64(s.Bytes())/float64(s.Tokens()), "bytes/token")
}
