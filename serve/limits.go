package serve

import "time"

// Limits bound what one request may ask for. A field that is 0 means the default given with it.
type Limits struct {
	Body      int64 // bytes of a request's body; 16 MiB
	Prompts   int   // prompts of one request; 64
	N         int   // choices for each prompt; 16
	Stops     int   // stop strings; 16
	Stored    int   // responses of /v1/responses to keep, in 64 MiB at most; 1,000
	MaxTokens int   // tokens of one choice; 0: until the context is full

	Time  time.Duration // for one request, waiting included; 1 hour
	Read  time.Duration // for a client to send a request's headers, and then its body; 30 seconds
	Write time.Duration // for a client to receive a piece of an answer; 30 seconds
	Ping  time.Duration // interval of the comments that a stream without text sends; 15 seconds
}

// maxDepth is the maximum nesting of a body's arrays and objects.
const maxDepth = 64

// maxElements is the maximum number of elements in all lists of a body, nested lists included. It does not
// count numbers or values that are kept as JSON, such as schemas; it does count fields for the chat template.
const maxElements = 1 << 14

func (l *Limits) setDefaults() {
	setDefault(&l.Body, 16<<20)
	setDefault(&l.Prompts, 64)
	setDefault(&l.N, 16)
	setDefault(&l.Stops, 16)
	setDefault(&l.Stored, 1000)
	setDefault(&l.Time, time.Hour)
	setDefault(&l.Read, 30*time.Second)
	setDefault(&l.Write, 30*time.Second)
	setDefault(&l.Ping, 15*time.Second)
}

func setDefault[T comparable](limit *T, value T) {
	var zero T
	if *limit == zero {
		*limit = value
	}
}
