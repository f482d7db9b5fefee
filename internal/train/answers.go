package train

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/tokenizer"
)

// Answerer returns the conversation with a number: the target's answers in it, turn by turn. It
// returns none for a conversation that is of no use.
type Answerer func(ctx context.Context, number int) ([]Conversation, error)

// answered is a line of the file of answers.
type answered struct {
	Key  string         `json:"key"`
	Talk []Conversation `json:"talk"`
}

// Answer makes the job's text from n conversations, numbered from first on: many at a time, saved
// to DIR/answers-SOURCE.jsonl as they arrive, so that an interrupted call can continue, or a later
// one add more. source identifies who answers and with which settings: each source has its own
// file. key identifies the input of the conversation with a number.
func (j *Job) Answer(ctx context.Context, first, n, atOnce int, source string, key func(number int) string,
	answer Answerer) error {
	path := filepath.Join(j.Dir, "answers-"+Fingerprint("conversations", source)+".jsonl")
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return err
	}
	// A command for another head may also write to it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	answers, err := readAnswers(f)
	if err != nil {
		return err
	}
	if err := j.ask(ctx, first, n, answers, atOnce, key, answer, f); err != nil {
		return err
	}
	j.Answers = []Conversation{} // this text exists, and no other
	none, said := 0, 0
	seen := map[string]bool{}
	for i := first; i < first+n; i++ {
		talk := answers[key(i)]
		for _, c := range talk {
			text := Fingerprint(c.Tokens)
			if seen[text] {
				continue // another number produced the same text
			}
			seen[text] = true
			j.Answers = append(j.Answers, c)
			said += len(c.Tokens) - c.From
		}
		if len(talk) == 0 {
			none++
		}
	}
	j.Notef("answers: %d of %d tokens in all, from %d conversations; %d more were of no use", len(j.Answers), said, n-none, none)
	return nil
}

// readAnswers returns a file's conversations by their keys, and ends a line that was cut short by a kill.
func readAnswers(f *os.File) (map[string][]Conversation, error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	answers := map[string][]Conversation{}
	for line := range bytes.Lines(b) {
		var a answered
		if json.Unmarshal(line, &a) == nil {
			answers[a.Key] = a.Talk
		}
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		_, err = f.WriteString("\n")
	}
	return answers, err
}

// ask requests the missing answers, and appends them to a file.
func (j *Job) ask(ctx context.Context, first, n int, answers map[string][]Conversation, atOnce int,
	key func(number int) string, answer Answerer, f *os.File) error {
	var missing []int
	for i := first; i < first+n; i++ {
		if _, ok := answers[key(i)]; !ok {
			missing = append(missing, i)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	w := json.NewEncoder(f)
	numbers := make(chan int)
	began := time.Now()
	noted := time.Now()
	done := 0
	for range max(1, atOnce) {
		wg.Go(func() {
			for i := range numbers {
				talk, err := answer(ctx, i)
				mu.Lock()
				if err == nil {
					a := answered{key(i), talk}
					answers[a.Key] = talk
					done++
					err = w.Encode(a)
				}
				if err != nil {
					stop(fmt.Errorf("conversation %d: %w", i+1, err))
				}
				if done == len(missing) || time.Since(noted) > 10*time.Second {
					noted = time.Now()
					half := min(atOnce, len(missing)-done) / 2 // of the conversations that are held is done
					left := time.Since(began) / time.Duration(max(1, done+half)) * time.Duration(len(missing)-done)
					j.Notef("conversations: %d of %d, %v left", n-len(missing)+done, n, left.Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	for _, i := range missing {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Server speaks OpenAI's protocol and serves the model for which a head is trained.
type Server struct {
	URL       string // without /v1
	Key       string // sent as a bearer token; "": none
	Tokenizer *tokenizer.Tokenizer
	Note      func(string) // called once, when a request fails and is sent again; nil: nobody

	once, said sync.Once
	model      string
	err        error
}

// Continue asks the server to continue a prompt, and reports whether the text ended by itself.
func (s *Server) Continue(ctx context.Context, prompt []int32, most int, temperature float32,
	seed uint64) (answer []int32, ended bool, err error) {
	s.once.Do(func() { s.model, s.err = s.firstModel(ctx) })
	if s.err != nil {
		return nil, false, s.err
	}
	request := map[string]any{"model": s.model, "prompt": prompt, "max_tokens": most,
		"temperature": temperature, "seed": seed, "return_token_ids": true}
	var reply struct {
		Choices []struct {
			Text   string  `json:"text"`
			Finish string  `json:"finish_reason"`
			Tokens []int32 `json:"token_ids"` // of grove, vLLM and SGLang: the text lacks special tokens
		} `json:"choices"`
		Error json.RawMessage `json:"error"`
	}
	if err := s.post(ctx, "/v1/completions", request, &reply); err != nil {
		return nil, false, err
	}
	if len(reply.Choices) == 0 {
		return nil, false, fmt.Errorf("%s: an answer without choices: %s", s.URL,
			cmp.Or(string(reply.Error), "no error either"))
	}
	c := reply.Choices[0]
	if len(c.Tokens) > 0 {
		if last := slices.Max(c.Tokens); int(last) >= s.Tokenizer.VocabSize() || slices.Min(c.Tokens) < 0 {
			return nil, false, fmt.Errorf("%s serves another model: token %d is none of the target's %d", s.URL, last,
				s.Tokenizer.VocabSize())
		}
		return c.Tokens[:min(most, len(c.Tokens))], c.Finish == "stop", nil
	}
	answer = s.Tokenizer.Encode(c.Text, tokenizer.EncodeOptions{})
	if s.Tokenizer.Decode(answer, tokenizer.DecodeOptions{Continue: true}) != c.Text { // a space was added before the text
		line := s.Tokenizer.Encode("\n", tokenizer.EncodeOptions{})
		answer = s.Tokenizer.Encode("\n"+c.Text, tokenizer.EncodeOptions{})[len(line):]
	}
	return answer[:min(most, len(answer))], c.Finish == "stop" && len(answer) <= most, nil
}

// firstModel returns the name of the first model that the server lists.
func (s *Server) firstModel(ctx context.Context) (string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if u, err := url.Parse(s.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("--teacher %q: want the address of a server, such as http://localhost:8080", s.URL)
	}
	_, err := s.send(ctx, s.base()+"/v1/models", nil, &list)
	if nobody := new(url.Error); err != nil && !errors.As(err, &nobody) { // the server is there, but busy or loading
		err = s.post(ctx, "/v1/models", nil, &list)
	}
	if err != nil {
		return "", fmt.Errorf("the server that answers: %w", err)
	}
	if len(list.Data) == 0 {
		return "", fmt.Errorf("%s serves no model", s.URL)
	}
	return list.Data[0].ID, nil
}

// base returns the address without /v1.
func (s *Server) base() string { return strings.TrimSuffix(strings.TrimSuffix(s.URL, "/"), "/v1") }

// post sends a request, or a GET if it is nil, repeats it while the server is busy, and decodes the
// reply.
func (s *Server) post(ctx context.Context, path string, request, reply any) error {
	const attempts = 8
	for try := 1; ; try++ {
		wait, err := s.send(ctx, s.base()+path, request, reply)
		if err == nil || wait < 0 || try == attempts || ctx.Err() != nil {
			return err
		}
		if s.Note != nil {
			s.said.Do(func() { s.Note(fmt.Sprintf("requests that the server fails to answer are sent again: %v", err)) })
		}
		select {
		case <-time.After(cmp.Or(wait, time.Second<<min(try-1, 5))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send sends a request once. After an error, wait is the time until the next attempt; 0: the usual
// time; below 0: another attempt is pointless.
func (s *Server) send(ctx context.Context, url string, request, reply any) (wait time.Duration, err error) {
	method, body := http.MethodGet, io.Reader(nil)
	if request != nil {
		b, err := json.Marshal(request)
		if err != nil {
			return -1, err
		}
		method, body = http.MethodPost, bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return -1, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.Key != "" {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.Body, 2000))
		err := fmt.Errorf("%s: %s: %s", url, a.Status, bytes.TrimSpace(text))
		if a.StatusCode != http.StatusTooManyRequests && a.StatusCode < 500 {
			return -1, err
		}
		seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, err
	}
	if err := json.NewDecoder(bufio.NewReader(a.Body)).Decode(reply); err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	return 0, nil
}
