package serve

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/inside"
)

// metrics is what /metrics shows: requests are counted as they end, engines are read when it is asked.
type metrics struct {
	s        *Server
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	first    *prometheus.HistogramVec
	between  *prometheus.HistogramVec
	perToken *prometheus.HistogramVec
	finishes *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{s: s, registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "grove_http_requests_total",
		Help: "Requests by endpoint and status."}, []string{"endpoint", "status"})
	m.finishes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "grove_finished_choices_total",
		Help: "Finished choices, by finish reason."}, []string{"model", "reason"})
	m.duration = prometheus.NewHistogramVec(histogram("grove_http_request_duration_seconds",
		"Time from a request to the end of its answer.", 0.001, 22), []string{"endpoint"})
	m.first = prometheus.NewHistogramVec(histogram("grove_time_to_first_token_seconds",
		"Time from a request to its first token.", 0.001, 20), []string{"model"})
	m.between = prometheus.NewHistogramVec(histogram("grove_time_between_chunks_seconds",
		"Time between the tokens of one round of a choice and those of the next.", 0.0005, 14), []string{"model"})
	m.perToken = prometheus.NewHistogramVec(histogram("grove_time_per_output_token_seconds",
		"Mean time between the tokens of a choice.", 0.0005, 14), []string{"model"})
	m.registry.MustRegister(m.requests, m.finishes, m.duration, m.first, m.between, m.perToken, m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// histogram makes a histogram whose buckets double.
func histogram(name, help string, from float64, buckets int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(from, 2, buckets)}
}

// serve answers GET /metrics.
func (m *metrics) serve(x *exchange) error {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(x, x.r)
	return nil
}

// request counts a request that ended.
func (m *metrics) request(endpoint string, status int, took time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
	if !probes[endpoint] {
		m.duration.WithLabelValues(endpoint).Observe(took.Seconds())
	}
}

// finished counts a choice that ended.
func (m *metrics) finished(model string, r *grove.Result) {
	m.finishes.WithLabelValues(model, string(r.Finish)).Inc()
	if t := inside.Stats(r).PerToken(); t > 0 {
		m.perToken.WithLabelValues(model).Observe(t.Seconds())
	}
}

// figureOf is a metric of a T. Its first label is the model.
type figureOf[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*T) float64
}

func gauge[T any](name, help string, value func(*T) float64, labels ...string) figureOf[T] {
	return figureOf[T]{prometheus.NewDesc("grove_"+name, help, append([]string{"model"}, labels...), nil),
		prometheus.GaugeValue, value}
}

func counter[T any](name, help string, value func(*T) float64, labels ...string) figureOf[T] {
	return figureOf[T]{prometheus.NewDesc("grove_"+name+"_total", help, append([]string{"model"}, labels...), nil),
		prometheus.CounterValue, value}
}

var modelFigures = []figureOf[entry]{
	gauge("model_loaded", "Whether the model is loaded: 1 or 0.", func(e *entry) float64 {
		if e.model != nil {
			return 1
		}
		return 0
	}),
	counter("model_loads", "Number of times the model was loaded.", func(e *entry) float64 { return float64(e.loads) }),
	gauge("model_memory_bytes", "Memory counted for the model while it is loaded.",
		func(e *entry) float64 { return float64(e.Bytes) }),
}

type stats = engine.Stats

var engineFigures = []figureOf[stats]{
	gauge("requests_running", "Requests that are running.",
		func(s *stats) float64 { return float64(s.Running) }),
	gauge("requests_waiting", "Requests in the queue.", func(s *stats) float64 { return float64(s.Waiting) }),
	counter("generations_finished", "Generations that finished normally.",
		func(s *stats) float64 { return float64(s.Finished) }),
	counter("generations_cancelled", "Generations that were cancelled.",
		func(s *stats) float64 { return float64(s.Cancelled) }),
	counter("generations_failed", "Generations that ended with an error.",
		func(s *stats) float64 { return float64(s.Failed) }),
	counter("preemptions", "Number of times a generation gave up its memory, to continue later.",
		func(s *stats) float64 { return float64(s.Preempted) }),
	counter("prompt_tokens", "Tokens of prompts.", func(s *stats) float64 { return float64(s.PromptTokens) }),
	counter("cached_tokens", "Tokens of prompts that an earlier request had computed.",
		func(s *stats) float64 { return float64(s.CachedTokens) }),
	counter("generated_tokens", "Tokens generated.", func(s *stats) float64 { return float64(s.Tokens) }),
	gauge("cache_bytes", "KV cache memory in use, kept prefixes included.",
		func(s *stats) float64 { return float64(s.CacheBytes) }),
	gauge("cache_prefix_bytes", "Upper bound of the KV cache memory of kept prefixes, which share memory.",
		func(s *stats) float64 { return float64(s.PrefixBytes) }),
	gauge("cache_limit_bytes", "Limit of the KV cache memory; 0 means no limit.",
		func(s *stats) float64 { return float64(s.CacheLimit) }),
	gauge("cache_usage_ratio",
		"Share of the limit that requests use, kept prefixes excluded; 0 without a limit.",
		func(s *stats) float64 {
			if s.CacheLimit == 0 {
				return 0
			}
			return float64(s.RunningBytes) / float64(s.CacheLimit)
		}),
	gauge("cache_dir_blocks", "Blocks of prefixes in files; 0 without --cache-dir.",
		func(s *stats) float64 { return float64(s.Files.Blocks) }),
	gauge("cache_dir_bytes", "Size of the files of prefixes.", func(s *stats) float64 { return float64(s.Files.Bytes) }),
	counter("cache_dir_blocks_written", "Blocks of prefixes written to files.",
		func(s *stats) float64 { return float64(s.Files.Written) }),
	counter("cache_dir_blocks_read", "Blocks of prefixes read from files.",
		func(s *stats) float64 { return float64(s.Files.Read) }),
	counter("cache_dir_blocks_missed", "Whole blocks of prompts found neither in files nor in memory.",
		func(s *stats) float64 { return float64(s.Missed) }),
	counter("cache_dir_blocks_refused", "Blocks that were damaged, such as by a wrong checksum, and were removed.",
		func(s *stats) float64 { return float64(s.Files.Refused) }),
	counter("engine_steps", "Steps of the engine.", func(s *stats) float64 { return float64(s.Steps) }),
}

type drafterStats = engine.DrafterStats

var drafterFigures = []figureOf[drafterStats]{
	counter("drafter_rounds", "Rounds after the prompt.", func(d *drafterStats) float64 { return float64(d.Rounds) },
		"drafter"),
	counter("drafter_plain_rounds", "Rounds that verified no drafted token.",
		func(d *drafterStats) float64 { return float64(d.Plain) }, "drafter"),
	counter("drafter_committed_tokens", "Tokens that rounds committed.",
		func(d *drafterStats) float64 { return float64(d.Committed) }, "drafter"),
	counter("drafter_drafted_tokens", "Drafted tokens that were verified.",
		func(d *drafterStats) float64 { return float64(d.Drafted) }, "drafter"),
	counter("drafter_accepted_tokens", "Drafted tokens that the model accepted.",
		func(d *drafterStats) float64 { return float64(d.Accepted) }, "drafter"),
	gauge("drafter_tokens_per_round", "Mean number of tokens that a round committed.",
		func(d *drafterStats) float64 { return d.Tau() }, "drafter"),
	counter("drafter_drafting_seconds", "Time spent drafting.",
		func(d *drafterStats) float64 { return d.Draft.Seconds() }, "drafter"),
	counter("drafter_verifying_seconds", "Time spent in the model's verification passes.",
		func(d *drafterStats) float64 { return d.Verify.Seconds() }, "drafter"),
	gauge("drafter_speedup_ratio",
		"Speed-up over plain decoding, as measured by the controller; 0 while unknown.",
		func(d *drafterStats) float64 { return d.Speedup }, "drafter"),
}

var (
	draftedByDepth = prometheus.NewDesc("grove_drafter_drafted_tokens_by_depth_total",
		"Drafted tokens that were verified, by depth in the tree.", []string{"model", "drafter", "depth"}, nil)
	acceptedByDepth = prometheus.NewDesc("grove_drafter_accepted_tokens_by_depth_total",
		"Drafted tokens that the model accepted, by depth in the tree.", []string{"model", "drafter", "depth"}, nil)
)

// Describe implements prometheus.Collector. The metrics depend on the drafters in use, so it
// describes none.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.s.models.each(func(e *entry) {
		for _, f := range modelFigures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(e), e.Name)
		}
		if e.model != nil {
			collect(to, e.model)
		}
	})
}

// collect sends the metrics of a loaded model.
func collect(to chan<- prometheus.Metric, m *Model) {
	s := inside.EngineStats(m)
	s.PromptTokens += m.embedded.Load()
	for _, f := range engineFigures {
		value := f.value(&s)
		if f.kind == prometheus.CounterValue {
			value -= f.value(&m.before)
		}
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, m.Name)
	}
	for _, d := range byDrafter(s.Drafters, m.Drafter) {
		for _, f := range drafterFigures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(d), m.Name, d.Name)
		}
		for i, depth := range d.Depths {
			at := strconv.Itoa(i + 1)
			to <- prometheus.MustNewConstMetric(draftedByDepth, prometheus.CounterValue, float64(depth.Drafted),
				m.Name, d.Name, at)
			to <- prometheus.MustNewConstMetric(acceptedByDepth, prometheus.CounterValue, float64(depth.Accepted),
				m.Name, d.Name, at)
		}
	}
}

// byDrafter sums the statistics of each family of drafters, except for the server's default
// drafter, so that options in requests do not create endless series.
func byDrafter(list []drafterStats, def string) (all []*drafterStats) {
	found := map[string]*drafterStats{}
	most := map[string]int{}
	for i := range list {
		d := &list[i]
		name := d.Name
		if name != def {
			name, _, _ = strings.Cut(name, ":")
		}
		to := found[name]
		if to == nil {
			to = &drafterStats{Name: name}
			found[name] = to
			all = append(all, to)
		}
		to.Add(&d.Stats)
		if d.Rounds >= most[name] {
			most[name], to.Speedup = d.Rounds, d.Speedup
		}
	}
	return all
}
