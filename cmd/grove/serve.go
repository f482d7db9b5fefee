package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/serve"
)

type serveCmd struct {
	modelFlags

	Template string `help:"File with a Jinja chat template, in place of the model's." placeholder:"FILE" group:"Model"`
	Alias    string `help:"Name of the model for clients; default: the file's." placeholder:"NAME" group:"Model"`
	Drafter  string `short:"d" help:"Drafter of requests that name none (see grove drafters)." default:"auto" placeholder:"NAME" group:"Speculation"`

	Host       string        `help:"Address to listen on (${default})." default:"127.0.0.1" placeholder:"HOST"`
	Port       uint16        `help:"Port to listen on (${default}); 0 takes a free one." default:"8080" placeholder:"PORT"`
	Keys       string        `help:"File of API keys, one a line; requests need one of them." placeholder:"FILE"`
	CORS       string        `name:"cors" help:"Let web pages of this origin call the server; * means all." placeholder:"ORIGIN"`
	TLSCert    string        `name:"tls-cert" help:"PEM file of the certificate, read again when it changes." placeholder:"FILE"`
	TLSKey     string        `name:"tls-key" help:"PEM file of the certificate's key." placeholder:"FILE"`
	Drain      time.Duration `help:"Time for requests to end after SIGTERM or Ctrl-C (${default})." default:"30s" placeholder:"TIME"`
	LogPrompts bool          `help:"Write the bodies of requests into the log."`

	Parallel    int           `help:"Requests computed at the same time; 0 means 64." default:"0" placeholder:"N" group:"Limits"`
	Queue       int           `help:"Requests that may wait (${default}); 0 means any number." default:"256" placeholder:"N" group:"Limits"`
	CacheMemory string        `help:"Memory for keys and values, such as 4G; 0 means no limit." default:"0" placeholder:"SIZE" group:"Limits"`
	MaxBody     string        `help:"Size of a request (${default})." default:"16M" placeholder:"SIZE" group:"Limits"`
	MaxPrompts  int           `help:"Prompts of a request (${default})." default:"64" placeholder:"N" group:"Limits"`
	MaxN        int           `help:"Choices for a prompt (${default})." default:"16" placeholder:"N" group:"Limits"`
	MaxStops    int           `help:"Stop strings of a request (${default})." default:"16" placeholder:"N" group:"Limits"`
	MaxTokens   int           `help:"Tokens of a choice; 0 means until the context is full." default:"0" placeholder:"N" group:"Limits"`
	MaxTime     time.Duration `help:"Time of a request, waiting included (${default})." default:"1h" placeholder:"TIME" group:"Limits"`
}

func (serveCmd) Help() string {
	return `Serves OpenAI's API: /v1/chat/completions, /v1/completions and /v1/models, with /health, /readyz and
/metrics. At / it has a page for browsers: chat, draft trees, races with plain decoding.
docs/serve.md describes endpoints and fields.

The server is ready when /readyz answers 200. SIGTERM or Ctrl-C lets requests end, a second one does not.
The log goes to standard error, a line for each request. It has no prompts.

Examples:
    grove serve
    grove serve -m qwen3-0.6b-q8_0.gguf --port 9000
    grove serve -m FILE --head HEAD --host 0.0.0.0 --keys keys.txt
    curl localhost:8080/v1/completions -d '{"prompt": "func main() {"}'`
}

func (cmd *serveCmd) Run(p *program) error {
	log := p.logger()
	o, err := cmd.options(log)
	if err != nil {
		return err
	}
	base := grove.Options{Parallel: cmd.Parallel, Queue: cmd.Queue}
	if base.CacheMemory, err = parseSize(cmd.CacheMemory); err != nil {
		return usagef("--cache-memory %q: %v", cmd.CacheMemory, err)
	}
	if cmd.Template != "" {
		if base.ChatTemplate, err = readText(cmd.Template); err != nil {
			return fmt.Errorf("--template: %w", err)
		}
	}
	s, err := serve.New(o)
	if err != nil {
		return usagef("--cors %q: %v", cmd.CORS, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cmd.Host, strconv.Itoa(int(cmd.Port))))
	if err != nil {
		return fmt.Errorf("%w: choose another --host or --port", err)
	}
	ctx, stop := p.context()
	defer stop()
	log.Info("loading", "listening", l.Addr().String())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, cmd.Drain) }()
	defer closeAtSecondSignal(ctx, s)()

	loaded := make(chan error, 1)
	var m *grove.Model
	go func() {
		var err error
		if m, err = cmd.openWith(p, base); err == nil {
			err = cmd.check(m)
		}
		loaded <- err
	}()
	select {
	case err := <-served: // a signal, or the listener failed
		return err
	case err := <-loaded:
		if m != nil {
			defer p.close(m)
		}
		if err != nil {
			stop()
			<-served
			return err
		}
	}
	s.SetModel(&serve.Model{Model: m, Name: cmd.alias(), Drafter: cmd.Drafter})
	log.Info("ready", "model", cmd.alias(), "drafter", cmd.Drafter, "context", m.Context(), "threads", m.Threads())
	if err := p.printAddress(l, o.TLS != nil); err != nil {
		return err
	}
	return <-served
}

// options are those of the server.
func (cmd *serveCmd) options(log *slog.Logger) (o serve.Options, err error) {
	o = serve.Options{CORS: cmd.CORS, Log: log, LogPrompts: cmd.LogPrompts}
	o.Limits = serve.Limits{Prompts: cmd.MaxPrompts, N: cmd.MaxN, Stops: cmd.MaxStops, MaxTokens: cmd.MaxTokens,
		Time: cmd.MaxTime}
	for name, n := range map[string]int{"--parallel": cmd.Parallel, "--queue": cmd.Queue,
		"--max-tokens": cmd.MaxTokens} {
		if n < 0 {
			return o, usagef("%s %d: want 0 or more", name, n)
		}
	}
	for name, n := range map[string]int64{"--max-prompts": int64(cmd.MaxPrompts), "--max-n": int64(cmd.MaxN),
		"--max-stops": int64(cmd.MaxStops), "--max-time": int64(cmd.MaxTime)} {
		if n < 1 {
			return o, usagef("%s %d: want 1 or more", name, n)
		}
	}
	if o.Body, err = parseSize(cmd.MaxBody); err != nil || o.Body == 0 {
		return o, usagef("--max-body %q: want a size, such as 16M", cmd.MaxBody)
	}
	if cmd.Keys != "" {
		if o.Keys, err = readKeys(cmd.Keys); err != nil {
			return o, fmt.Errorf("--keys: %w", err)
		}
	}
	switch {
	case (cmd.TLSCert == "") != (cmd.TLSKey == ""):
		return o, usagef("--tls-cert and --tls-key belong together: give both")
	case cmd.TLSCert != "":
		if o.TLS, err = serve.LoadTLS(cmd.TLSCert, cmd.TLSKey, log); err != nil {
			return o, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
	}
	return o, nil
}

// check refuses a drafter that cannot run before a request does.
func (cmd *serveCmd) check(m *grove.Model) error {
	if d := cmd.Drafter; !plain(d) {
		_, err := grove.Collect(m.GenerateTokens(context.Background(), []int32{0},
			grove.Request{MaxTokens: 1, Drafter: d}))
		return err
	}
	return nil
}

// alias is the name of the model for clients.
func (cmd *serveCmd) alias() string {
	switch {
	case cmd.Alias != "":
		return cmd.Alias
	case cmd.Model == "":
		return "grove"
	}
	return strings.TrimSuffix(filepath.Base(hub.Shown(cmd.Model)), ".gguf")
}

// printAddress tells where the server listens.
func (p *program) printAddress(l net.Listener, secure bool) error {
	url := "http://" + l.Addr().String()
	if secure {
		url = "https://" + l.Addr().String()
	}
	if p.JSON {
		return p.printJSON(struct {
			Address string `json:"address"`
		}{url})
	}
	_, err := fmt.Fprintln(p.stdout, "grove serve listens on", url)
	return err
}

// logger writes to standard error.
func (p *program) logger() *slog.Logger {
	o := &slog.HandlerOptions{}
	if p.Verbose {
		o.Level = slog.LevelDebug
	}
	if p.JSON {
		return slog.New(slog.NewJSONHandler(p.stderr, o))
	}
	return slog.New(slog.NewTextHandler(p.stderr, o))
}

// closeAtSecondSignal closes s at a signal after the one that ended ctx, until the function that it
// returns is called.
func closeAtSecondSignal(ctx context.Context, s *serve.Server) (end func()) {
	again := make(chan os.Signal, 1)
	done := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		case <-done:
			return
		}
		select {
		case <-again:
			s.Close()
		case <-done:
		}
		signal.Stop(again)
	}()
	return func() { close(done) }
}

// readKeys reads a file of keys. Empty lines and lines that begin with # are no keys.
func readKeys(path string) (keys []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if key := strings.TrimSpace(s.Text()); key != "" && !strings.HasPrefix(key, "#") {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return nil, fmt.Errorf("%s: it has no key: write one on a line", path)
	}
	return keys, nil
}

// parseSize reads a number of bytes: 0, 1500000, 512M, 4G.
func parseSize(text string) (int64, error) {
	number, shift := strings.TrimSuffix(strings.ToUpper(text), "B"), 0
	for i, unit := range []string{"K", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if size := n * float64(int64(1)<<shift); err == nil && size >= 0 && size < 1<<60 {
		return int64(size), nil
	}
	return 0, fmt.Errorf("want a size in bytes, such as 512M or 4G")
}
