package serve_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
)

// The dashboard and the alert rules name metrics that the server has, with labels that they have.
func TestDeployedMetrics(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for range 2 {
		s.send("POST", "/v1/completions", `{"prompt":"x x x x x x","max_tokens":20,"temperature":0,"drafter":"lookup"}`)
	}
	_, _, metrics := s.send("GET", "/metrics", "")
	labels := map[string]string{} // by metric, as one text
	for _, line := range regexp.MustCompile(`(?m)^(grove_[a-z_]+)(\{[^}]*\})?`).FindAllStringSubmatch(metrics, -1) {
		labels[line[1]] += line[2] + `instance="" job=""`
	}
	used := regexp.MustCompile(`(grove_[a-z_]+)(\{[^}]*\})?`)
	label := regexp.MustCompile(`([a-z]+)=~?"`)
	for _, file := range []string{"../deploy/grafana.json", "../deploy/alerts.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is no JSON", file)
		}
		text := strings.ReplaceAll(string(data), `\"`, `"`)
		found := used.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, m := range found {
			has, known := labels[m[1]]
			if !known {
				t.Errorf("%s: the server has no %s", file, m[1])
			}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(has, l[1]+`="`) {
					t.Errorf("%s: %s has no label %s", file, m[1], l[1])
				}
			}
		}
	}
}

// Quantiles tell times of requests apart up to half an hour, and waits for a token up to five minutes.
func TestLongTimes(t *testing.T) {
	s := start(t, nil, serve.Options{})
	s.send("POST", "/v1/completions", `{"prompt":"x","max_tokens":1}`)
	_, _, metrics := s.send("GET", "/metrics", "")
	for name, least := range map[string]float64{"grove_http_request_duration_seconds": 1800,
		"grove_time_to_first_token_seconds": 300} {
		most := 0.0
		for _, m := range regexp.MustCompile(name+`_bucket\{.*le="([0-9.]+)"`).FindAllStringSubmatch(metrics, -1) {
			if le, err := strconv.ParseFloat(m[1], 64); err == nil {
				most = max(most, le)
			}
		}
		if most < least {
			t.Errorf("%s: the last bucket ends at %v s: want %v", name, most, least)
		}
	}
}

// In a rolling update a server gets requests until the service knows that it is stopping, and
// refuses none of them; then it has the time that draining takes by default.
func TestRollingUpdate(t *testing.T) {
	number := func(file, pattern string) (n int) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindSubmatch(data)
		if found == nil {
			t.Fatalf("%s: no %s", file, pattern)
		}
		n, _ = strconv.Atoi(string(found[1]))
		return n
	}
	const deployment = "../deploy/kubernetes.yaml"
	sleep := number(deployment, `lifecycle:.*\n +preStop: \{sleep: \{seconds: (\d+)\}\}`)
	grace := number(deployment, `terminationGracePeriodSeconds: (\d+)`)
	drain := number("../cmd/grove/serve.go", `Drain .*default:"(\d+)s"`)
	const cancelling = 2 // cancelTime
	if sleep < 1 || grace <= sleep+drain+cancelling {
		t.Errorf("%d s before the signal, %d s of draining, %d s of grace", sleep, drain, grace)
	}
}

// The alert rules fire, and do not, where their test says.
func TestAlertRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	for _, args := range [][]string{
		{"check", "rules", "../deploy/alerts.yaml"}, {"test", "rules", "../deploy/alerts_test.yaml"}, {"check", "config",
			"../deploy/prometheus.yml"},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Images start without any files. Without certificates of authorities grove pull and --allow-pull cannot fetch.
func TestImagesTrustAuthorities(t *testing.T) {
	for _, file := range []string{"../deploy/Containerfile", "../deploy/Containerfile.release"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "FROM scratch\n") {
			t.Errorf("%s: the image begins with another one", file)
		}
		if !strings.Contains(string(data), " /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/\n") {
			t.Errorf("%s has no certificates", file)
		}
	}
}
