package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/kernels/memory"
	"github.com/grovellm/grove/serve"
)

type serveCmd struct {
	Model []string `short:"m" sep:"none" env:"GROVE_MODEL" help:"GGUF file, Hugging Face folder, ORG/REPO that grove pull fetched, or folder of models; may be repeated; default: grove's small model." placeholder:"FILE" hub:"" group:"Model"`

	command.OpenFlags

	Template    string `help:"File with a Jinja chat template, in place of the model's." placeholder:"FILE" group:"Model"`
	Alias       string `help:"Name of the model for clients; default: the file's name." placeholder:"NAME" group:"Model"`
	ModelMemory string `help:"Memory that all models together may take, such as 16G; 0 means what the machine or container has." default:"0" placeholder:"SIZE" group:"Model"`

	KeepAlive *time.Duration `help:"Time until a model without requests is unloaded: 0 means at once, below 0 never; default: never for one model, 5m for several." placeholder:"TIME" group:"Model"`

	Drafter string `short:"d" help:"Drafter for requests that name none (see grove drafters)." default:"auto" placeholder:"NAME" group:"Speculation"`

	Host       string        `help:"Address to listen on (${default})." default:"127.0.0.1" placeholder:"HOST"`
	Port       uint16        `help:"Port to listen on (${default}); 0 takes a free one." default:"8080" placeholder:"PORT"`
	Keys       string        `help:"File of API keys, one per line; requests must send one of them." placeholder:"FILE"`
	CORS       []string      `name:"cors" help:"Let web pages from this origin call the server; * means any; may be repeated." placeholder:"ORIGIN"`
	AllowHost  []string      `help:"Host name by which clients without a key may reach the server, besides IP addresses and localhost; *.NAME means its subdomains, * any name; may be repeated." placeholder:"NAME"`
	TLSCert    string        `name:"tls-cert" help:"PEM file of the certificate, read again when it changes." placeholder:"FILE"`
	TLSKey     string        `name:"tls-key" help:"PEM file of the certificate's key." placeholder:"FILE"`
	Drain      time.Duration `help:"Time for requests to finish after SIGTERM or Ctrl-C (${default})." default:"30s" placeholder:"TIME"`
	AllowPull  bool          `help:"Let clients fetch models from the hub (/api/pull)."`
	LogPrompts bool          `help:"Write request bodies to the log."`
	NoStore    bool          `help:"Do not store responses of /v1/responses; by default the last 1,000 are kept, in 64 MiB at most."`
	CutLine    []string      `sep:"none" help:"Drop lines of system messages that match this regular expression from prompts; may be repeated." placeholder:"REGEXP"`

	Parallel     int            `help:"Requests that run at the same time; 0 means 64." default:"0" placeholder:"N" group:"Limits"`
	Objective    map[string]int `help:"Priority of requests that a gateway marks with this InferenceObjective; may be repeated." placeholder:"NAME=N" group:"Limits"`
	Queue        int            `help:"Requests that may wait in the queue (${default}); 0 means no limit." default:"256" placeholder:"N" group:"Limits"`
	CacheMemory  string         `help:"Memory for the KV cache, such as 4G; 0 means no limit, except that kept prompts take at most half of the free memory." default:"0" placeholder:"SIZE" group:"Limits"`
	CacheDir     string         `help:"Keep computed prompts in DIR too, for the next start." placeholder:"DIR" group:"Limits"`
	CacheDirSize string         `help:"Maximum size of that folder, per model (${default})." default:"16G" placeholder:"SIZE" group:"Limits"`
	MaxBody      string         `help:"Size of a request's body (${default})." default:"16M" placeholder:"SIZE" group:"Limits"`
	MaxPrompts   int            `help:"Prompts per request (${default})." default:"64" placeholder:"N" group:"Limits"`
	MaxN         int            `help:"Choices per prompt (${default})." default:"16" placeholder:"N" group:"Limits"`
	MaxStops     int            `help:"Stop strings per request (${default})." default:"16" placeholder:"N" group:"Limits"`
	MaxTokens    int            `help:"Tokens per choice; 0 means until the context is full." default:"0" placeholder:"N" group:"Limits"`
	MaxTime      time.Duration  `help:"Time per request, waiting included (${default})." default:"1h" placeholder:"TIME" group:"Limits"`

	base grove.Options // the options for opening models
}

func (serveCmd) Help() string {
	return `Serves OpenAI's API (/v1/chat/completions, /v1/responses, /v1/completions, /v1/embeddings), Anthropic's
(/v1/messages) and Ollama's (/api), with /health, /readyz and /metrics. At / is a web page with chat, draft trees and races against plain decoding.
docs/serve.md describes the endpoints and fields.

With several models, each is loaded when a request names it. A file grove.json in their folder names their draft models and heads.

The server is ready when /readyz answers 200. On SIGTERM or Ctrl-C it lets requests finish; a second one ends it at once.
The log goes to standard error, one line per request. It has no prompts.

Examples:
    grove serve
    grove serve -m qwen3-0.6b-q8_0.gguf --port 9000
    grove serve -m models --keep-alive 10m --cache-memory 2G
    grove serve -m FILE --head HEAD --host 0.0.0.0 --keys keys.txt
    curl localhost:8080/v1/completions -d '{"prompt": "func main() {"}'`
}

func (cmd *serveCmd) Run(p *command.Program) error {
	log := newLogger(p)
	slog.SetDefault(log)           // engines log panics there
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end before the server
	o, err := cmd.options(log)
	if err != nil {
		return err
	}
	sources, err := cmd.sources(p, log)
	if err != nil {
		return err
	}
	if cmd.AllowPull {
		o.Pull = cmd.pull(p, log)
	}
	switch {
	case cmd.KeepAlive != nil:
		o.KeepAlive = max(*cmd.KeepAlive, -1)
		o.KeepAlive = cmp.Or(o.KeepAlive, 1) // 0 means the default there
	case len(sources) == 1:
		o.KeepAlive = -1
	}
	s, err := serve.New(o)
	if err != nil {
		return command.Usagef("--cors, --allow-host: %v", err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cmd.Host, strconv.Itoa(int(cmd.Port))))
	if err != nil {
		return fmt.Errorf("%w: choose another --host or --port", err)
	}
	ctx, stop := p.Context()
	defer stop()
	log.Info("loading", "listening", l.Addr().String())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, cmd.Drain) }()
	defer closeAtSecondSignal(ctx, s)()

	ready := make(chan error, 1)
	go func() { ready <- s.SetSources(sources) }()
	select {
	case err := <-served: // a signal, or the listener failed
		return err
	case err := <-ready:
		if ctx.Err() != nil { // the signal ended the load
			return <-served
		}
		if err != nil {
			stop()
			<-served
			return err
		}
	}
	for _, source := range sources {
		log.Info("ready", "model", source.Name, "bytes", source.Bytes)
	}
	if err := printAddress(p, l, o.TLS != nil); err != nil {
		return err
	}
	return <-served
}

// options returns the server's options.
func (cmd *serveCmd) options(log *slog.Logger) (o serve.Options, err error) {
	o = serve.Options{CORS: cmd.CORS, Hosts: cmd.AllowHost, Log: log, LogPrompts: cmd.LogPrompts, NoStore: cmd.NoStore,
		Waiting: cmd.Queue, Objectives: cmd.Objective}
	o.Limits = serve.Limits{Prompts: cmd.MaxPrompts, N: cmd.MaxN, Stops: cmd.MaxStops, MaxTokens: cmd.MaxTokens,
		Time: cmd.MaxTime}
	if _, err := netip.ParseAddr(cmd.Host); err != nil {
		if cmd.Host == "" || strings.ContainsAny(cmd.Host, ":/[]*") {
			return o, command.Usagef("--host %q: want only an address or a name, such as 127.0.0.1, or 0.0.0.0 for all addresses; "+
				"the port goes in --port", cmd.Host)
		}
		o.Hosts = append(o.Hosts, cmd.Host)
	}
	for name, n := range map[string]int{"--parallel": cmd.Parallel, "--queue": cmd.Queue,
		"--max-tokens": cmd.MaxTokens} {
		if n < 0 {
			return o, command.Usagef("%s %d: want 0 or more", name, n)
		}
	}
	for name, n := range map[string]int64{"--max-prompts": int64(cmd.MaxPrompts), "--max-n": int64(cmd.MaxN),
		"--max-stops": int64(cmd.MaxStops), "--max-time": int64(cmd.MaxTime)} {
		if n < 1 {
			return o, command.Usagef("%s %d: want 1 or more", name, n)
		}
	}
	for _, line := range cmd.CutLine {
		pattern, err := regexp.Compile(line)
		if err != nil {
			return o, command.Usagef("--cut-line %q: %v", line, err)
		}
		o.CutLines = append(o.CutLines, pattern)
	}
	if o.Body, err = parseSize(cmd.MaxBody); err != nil || o.Body == 0 {
		return o, command.Usagef("--max-body %q: want a size, such as 16M", cmd.MaxBody)
	}
	if o.Memory, err = parseSize(cmd.ModelMemory); err != nil {
		return o, command.Usagef("--model-memory %q: %v", cmd.ModelMemory, err)
	}
	o.Memory = cmp.Or(o.Memory, memory.Available())
	if cmd.Keys != "" {
		if o.Keys, err = readKeys(cmd.Keys); err != nil {
			return o, fmt.Errorf("--keys: %w", err)
		}
	}
	switch {
	case cmd.Drain < 0:
		return o, command.Usagef("--drain %v: want 0 or more", cmd.Drain)
	case (cmd.TLSCert == "") != (cmd.TLSKey == ""):
		return o, command.Usagef("--tls-cert and --tls-key go together: give both")
	case cmd.TLSCert != "":
		if o.TLS, err = serve.LoadTLS(cmd.TLSCert, cmd.TLSKey, log); err != nil {
			return o, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
	}
	return o, nil
}

// printAddress prints where the server listens.
func printAddress(p *command.Program, l net.Listener, secure bool) error {
	url := "http://" + l.Addr().String()
	if secure {
		url = "https://" + l.Addr().String()
	}
	if p.JSON {
		return p.PrintJSON(struct {
			Address string `json:"address"`
		}{url})
	}
	_, err := fmt.Fprintln(p.Stdout, "grove serve listens on", url)
	return err
}

// newLogger returns a logger that writes to standard error.
func newLogger(p *command.Program) *slog.Logger {
	o := &slog.HandlerOptions{}
	if p.Verbose {
		o.Level = slog.LevelDebug
	}
	if p.JSON {
		return slog.New(slog.NewJSONHandler(p.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, o))
}

// closeAtSecondSignal closes s at a signal after the one that ended ctx, until the returned
// function is called.
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

// readKeys reads a file of keys. It skips empty lines and lines that begin with #.
func readKeys(path string) (keys []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		key := strings.TrimSpace(line)
		switch {
		case key == "" || strings.HasPrefix(key, "#"):
		case strings.ContainsAny(key, " \t"):
			return nil, fmt.Errorf("%s: a key contains white space: put each key and each comment on its own line", path)
		default:
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return nil, fmt.Errorf("%s: the file has no key: write one per line", path)
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
