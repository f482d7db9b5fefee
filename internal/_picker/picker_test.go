package picker

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/datalayer"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/datalayer/extractor/metrics"
	"sigs.k8s.io/yaml"
)

// scrape returns the server's metrics.
func scrape(t *testing.T) string {
	t.Helper()
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := serve.New(serve.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.SetModel(&serve.Model{Model: m, Name: "grove/model", Drafter: "lookup"})
	h := httptest.NewServer(s)
	defer h.Close()
	r, err := http.Get(h.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The endpoint picker of the Gateway API Inference Extension, set up by the chart's values in
// deploy, finds what it asks for.
func TestPicker(t *testing.T) {
	file, err := os.ReadFile("../../deploy/inference-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		InferenceExtension struct {
			PluginsConfigFile   string
			PluginsCustomConfig map[string]string
		}
	}
	if err := yaml.Unmarshal(file, &values); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Plugins []struct {
			Type       string
			Parameters json.RawMessage
		}
	}
	extension := values.InferenceExtension
	if err := yaml.Unmarshal([]byte(extension.PluginsCustomConfig[extension.PluginsConfigFile]), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Plugins) == 0 || config.Plugins[0].Type != metrics.MetricsExtractorType {
		t.Fatalf("the plugins are %v: want %s first", config.Plugins, metrics.MetricsExtractorType)
	}
	plugin, err := metrics.ModelServerExtractorFactory("test", config.Plugins[0].Parameters, nil)
	if err != nil {
		t.Fatal(err)
	}
	extractor := plugin.(*metrics.Extractor)
	text := scrape(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	// Figures that are there and not 0 show that each is read from its own metric.
	for name, value := range map[string]float64{"grove_requests_waiting": 3, "grove_requests_running": 5,
		"grove_cache_usage_ratio": 0.25} {
		family := families[name]
		if family == nil || family.GetType() != dto.MetricType_GAUGE || len(family.Metric) != 1 {
			t.Fatalf("the server has no gauge %s", name)
		}
		*family.Metric[0].Gauge.Value = value
	}
	endpoint := datalayer.NewEndpoint(&datalayer.EndpointMetadata{}, datalayer.NewMetrics())
	if err := extractor.Extract(t.Context(), families, endpoint); err != nil {
		t.Fatal(err)
	}
	if m := endpoint.GetMetrics(); m.WaitingQueueSize != 3 || m.RunningRequestsSize != 5 || m.KVCacheUsagePercent != 0.25 {
		t.Errorf("the picker reads %v", m)
	}
}
