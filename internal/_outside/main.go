// Outside is a program of others: it has grove's public packages alone, a drafter of its own, and serves
// grove's embedded model with it.
//
//	go run . -listen localhost:8080
//	curl localhost:8080/v1/completions -d '{"prompt":"func main() {","max_tokens":32,"temperature":0.8}'
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

const drafter = "runners-up:width=2"

func main() {
	listen := flag.String("listen", "localhost:0", "address to serve at")
	flag.Parse()
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	result, err := generate(context.Background(), m, drafter)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n%d tokens in %d passes\n", result.Text, result.Stats.Tokens, 1+result.Stats.Rounds)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Println("serving at", l.Addr())
	if err := serveModel(ctx, m, l); err != nil {
		log.Fatal(err)
	}
}

// generate samples a text.
func generate(ctx context.Context, m *grove.Model, drafter string) (*grove.Result, error) {
	return grove.Collect(m.Generate(ctx, "func main() {", grove.Request{
		MaxTokens: 96, Drafter: drafter, Sampling: grove.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7},
	}))
}

// serveModel answers requests until ctx ends.
func serveModel(ctx context.Context, m *grove.Model, l net.Listener) error {
	s, err := serve.New(serve.Options{})
	if err != nil {
		return err
	}
	s.SetModel(&serve.Model{Model: m, Name: "embedded", Drafter: drafter})
	return s.Serve(ctx, l, 10*time.Second)
}
