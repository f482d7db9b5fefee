package serve

import "time"

// Limits bound what one request may ask for. A field that is 0 has the default named with it; a negative one has none.
type Limits struct {
	Body      int64 // bytes of a request's body; 16 MiB
	Prompts   int   // prompts of one request; 64
	N         int   // choices for each prompt; 16
	Stops     int   // stop strings; 16
	MaxTokens int   // tokens of one choice; 0: as many as the context holds

	Time  time.Duration // of one request, waiting included; 1 hour
	Read  time.Duration // for a client to send a request's headers, and then its body; 30 seconds
	Write time.Duration // for a client to take a piece of an answer; 30 seconds
	Idle  time.Duration // of a connection without a request; 2 minutes
	Ping  time.Duration // a stream without text sends a comment so often; 15 seconds
}

// maxDepth is the most that a body's arrays and objects may be nested.
const maxDepth = 64

// boundless stands for a limit that was switched off.
const boundless = 1 << 40

func (l *Limits) setDefaults() {
	bound(&l.Body, 16<<20)
	bound(&l.Prompts, 64)
	bound(&l.N, 16)
	bound(&l.Stops, 16)
	for to, value := range map[*time.Duration]time.Duration{
		&l.Time: time.Hour, &l.Read: 30 * time.Second, &l.Write: 30 * time.Second, &l.Idle: 2 * time.Minute, &l.Ping: 15 * time.Second,
	} {
		if *to < 0 {
			value = 100 * 365 * 24 * time.Hour
		}
		if *to <= 0 {
			*to = value
		}
	}
}

// bound sets a limit that is 0 to its default.
func bound[T int | int64](limit *T, value T) {
	switch {
	case *limit == 0:
		*limit = value
	case *limit < 0:
		*limit = boundless
	}
}
