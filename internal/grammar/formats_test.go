package grammar

import (
	"fmt"
	"math/rand/v2"
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Texts with a format are valid, and common ones can be written, also below a maxLength.
func TestFormats(t *testing.T) {
	parses := func(layout string) func(string) bool {
		return func(text string) bool {
			_, err := time.Parse(layout, text)
			return err == nil
		}
	}
	address := func(version func(netip.Addr) bool) func(string) bool {
		return func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && version(a)
		}
	}
	size := func(least, most int) func(string) bool {
		return func(text string) bool { return len(text) >= least && len(text) <= most }
	}
	for format, c := range map[string]struct {
		valid   func(text string) bool
		yes, no string
	}{
		"date": {parses(time.DateOnly), "2024-02-29 2000-02-29 1999-12-31", "2023-02-29 1900-02-29 2024-02-30"},
		"date-time": {parses(time.RFC3339Nano), "2024-02-29T23:59:59.123456789Z 2024-05-06T07:08:09+01:00",
			"2024-05-06T07:08:09 2023-02-29T00:00:00Z"},
		"time": {parses("15:04:05.999999999Z07:00"), "12:30:00Z", "24:00:00Z"},
		"ipv6": {address(netip.Addr.Is6), ":: ::1 2001:db8::1 fe80:: 2001:DB8:0:0:0:0:0:1 1::8",
			": 1::2::3 1:2:3:4:5:6:7:8:9 :::"},
		"ipv4": {address(netip.Addr.Is4), "192.168.0.1", "256.1.1.1 01.1.1.1"},
		"email": {func(text string) bool {
			a, err := mail.ParseAddress(text)
			return err == nil && a.Address == text && len(text) < 255
		}, "ada.o'neil+tag@mail.example.co.uk A@Example.COM a@vip.163.com", "a@b a..b@c.org @c.org"},
		"hostname": {size(1, 253), "localhost www.Example.org 10-0-0-1.eu.example.org", "-a a-.b a..b a_b"},
		"uuid":     {size(36, 36), "0B0CF0F9-8F09-4B98-9D38-8089ecfba20e", "0b0cf0f9"},
		"duration": {size(3, 99), "PT1H30M P1DT12H P3Y6M4DT12H30M5S P2W PT0S", "P PT P1DT 1H P1W2D"},
		"uri": {func(text string) bool {
			u, err := url.Parse(text)
			return err == nil && u.IsAbs()
		}, "https://example.org/a%20b?q=1&r=a+b#c http://localhost:8080 https://en.wikipedia.org/wiki/Go_(language) " +
			"file:///tmp/x.txt mailto:a@example.org postgres://u:p@10.0.0.1:5432/db http://[::1]:80/ note://a/b " +
			"urn:isbn:0451450523 ws://A.example/", "www.example.org /a/b http://a/%2 http://a:99999/"},
	} {
		for _, most := range []int{0, 500, 255, 100} {
			bound := ""
			if most > 0 {
				bound = fmt.Sprintf(`, "maxLength": %d`, most)
			}
			g, err := JSONSchema(`{"type": "string", "format": "` + format + `"` + bound + `}`)
			if err != nil {
				t.Fatalf("%s%s: %v", format, bound, err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				text, err := g.Sample(rng.IntN, 200)
				text = unquote(text)
				if err != nil || !c.valid(text) || most > 0 && len(text) > most {
					t.Errorf("%s%s: %q, %v", format, bound, text, err)
				}
			}
			if most > 0 {
				continue
			}
			yes := strings.Fields(c.yes)
			for i, text := range append(yes, strings.Fields(c.no)...) {
				if got, err := g.Accepts(quote(text)); err != nil || got != (i < len(yes)) {
					t.Errorf("%s: %s: accepted %v, %v", format, text, got, err)
				}
			}
		}
	}
}
