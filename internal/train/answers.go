package train

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/tokenizer"
)

// Answerer continues a prompt; number is that of the prompt.
type Answerer func(ctx context.Context, number int, prompt []int32) (answer []int32, err error)

// answered is a line of the file of answers.
type answered struct {
	Number int     `json:"number"`
	Tokens []int32 `json:"tokens"` // of the answer
}

// Answer makes the job's text of prompts and what answer says to each: many at a time, kept in
// DIR/answers.jsonl as they come, so that an interrupted call goes on. source tells apart who
// answers, and with what settings; answers of another, or to other prompts, are made anew.
func (j *Job) Answer(ctx context.Context, prompts [][]int32, atOnce int, source string, answer Answerer) error {
	path := filepath.Join(j.Dir, "answers.jsonl")
	header := Fingerprint(prompts, source)
	answers, at, err := readAnswers(path, header, len(prompts))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(at); err != nil {
		return err
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if at == 0 {
		if _, err := fmt.Fprintln(f, header); err != nil {
			return err
		}
	}
	if err := j.ask(ctx, prompts, answers, atOnce, answer, f); err != nil {
		return err
	}
	j.Answers = nil
	for i, p := range prompts {
		j.Answers = append(j.Answers, append(append([]int32(nil), p...), answers[i]...))
	}
	return nil
}

// readAnswers returns the answers of a file by their numbers, and the length of the file's whole
// lines. Of another header, and where there is no file, there are none.
func readAnswers(path, header string, n int) (map[int][]int32, int64, error) {
	answers := map[int][]int32{}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, err
	}
	at := 0
	for line := range bytes.Lines(b) {
		whole := bytes.HasSuffix(line, []byte("\n"))
		if at == 0 {
			if !whole || strings.TrimSpace(string(line)) != header {
				return answers, 0, nil
			}
		} else {
			var a answered
			if !whole || json.Unmarshal(line, &a) != nil || a.Number < 0 || a.Number >= n {
				break
			}
			answers[a.Number] = a.Tokens
		}
		at += len(line)
	}
	return answers, int64(at), nil
}

// ask gets the answers that are missing, and appends them to a file.
func (j *Job) ask(ctx context.Context, prompts [][]int32, answers map[int][]int32, atOnce int, answer Answerer,
	f *os.File) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	w := json.NewEncoder(f)
	numbers := make(chan int)
	began := time.Now()
	noted := time.Now()
	first := len(answers)
	for range max(1, atOnce) {
		wg.Go(func() {
			for i := range numbers {
				tokens, err := answer(ctx, i, prompts[i])
				mu.Lock()
				if err == nil {
					answers[i] = tokens
					err = w.Encode(answered{i, tokens})
				}
				if err != nil {
					stop(fmt.Errorf("prompt %d: %w", i+1, err))
				}
				if done := len(answers); done == len(prompts) || time.Since(noted) > 10*time.Second {
					noted = time.Now()
					left := time.Since(began) / time.Duration(max(1, done-first)) * time.Duration(len(prompts)-done)
					j.Notef("answers: %d of %d, %v left", done, len(prompts), left.Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	var missing []int
	for i := range prompts {
		if _, ok := answers[i]; !ok {
			missing = append(missing, i)
		}
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

// Server speaks OpenAI's protocol, and serves the model that a head is trained for.
type Server struct {
	URL       string // up to and without /v1
	Key       string // sent as a bearer token; "": none
	MaxTokens int
	Tokenizer *tokenizer.Tokenizer
	Attempts  int // of a request that is refused for the moment; 0: 8

	once  sync.Once
	model string
	err   error
}

// Answerer asks the server. Prompts with even numbers are continued at temperature 0, others at 1.
func (s *Server) Answerer() Answerer {
	return func(ctx context.Context, number int, prompt []int32) ([]int32, error) {
		s.once.Do(func() { s.model, s.err = s.firstModel(ctx) })
		if s.err != nil {
			return nil, s.err
		}
		request := map[string]any{"model": s.model, "prompt": prompt, "max_tokens": s.MaxTokens,
			"temperature": number % 2, "seed": number}
		var reply struct {
			Choices []struct {
				Text   string `json:"text"`
				Finish string `json:"finish_reason"`
			} `json:"choices"`
		}
		if err := s.post(ctx, "/v1/completions", request, &reply); err != nil {
			return nil, err
		}
		if len(reply.Choices) == 0 {
			return nil, fmt.Errorf("%s: an answer without choices", s.URL)
		}
		c := reply.Choices[0]
		tokens := s.Tokenizer.Encode(c.Text, tokenizer.EncodeOptions{})
		if c.Finish == "stop" && s.Tokenizer.EOS() >= 0 {
			tokens = append(tokens, s.Tokenizer.EOS())
		}
		return tokens, nil
	}
}

// firstModel is the name of the first model that the server lists.
func (s *Server) firstModel(ctx context.Context) (string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := s.post(ctx, "/v1/models", nil, &list); err != nil {
		return "", err
	}
	if len(list.Data) == 0 {
		return "", fmt.Errorf("%s serves no model", s.URL)
	}
	return list.Data[0].ID, nil
}

// post sends a request, a GET where it is nil, again while the server is busy, and decodes the
// reply.
func (s *Server) post(ctx context.Context, path string, request, reply any) error {
	url, attempts := strings.TrimSuffix(strings.TrimSuffix(s.URL, "/"), "/v1")+path, s.Attempts
	if attempts == 0 {
		attempts = 8
	}
	for try := 1; ; try++ {
		wait, err := s.send(ctx, url, request, reply)
		if err == nil || wait < 0 || try == attempts || ctx.Err() != nil {
			return err
		}
		if wait == 0 {
			wait = time.Second << min(try-1, 5)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send sends a request once. After an error wait says how long to wait before the next attempt: 0:
// as usual; below 0: another makes no sense.
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
