package grove

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove/models"
)

// A grammar that several generations ask for at the same time, as the choices of a request do, is made once.
func TestConstraintIsMadeOnce(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var fields []string
	for i := range 300 { // it takes a while
		fields = append(fields, fmt.Sprintf(`"p%d":{"type":"string","pattern":"^([a-z]{1,20}[0-9]){1,10}$"}`, i))
	}
	r := Request{MaxTokens: 1, JSONSchema: `{"properties":{` + strings.Join(fields, ",") + `}}`}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if _, err := Collect(m.Generate(t.Context(), "Once", r)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(m.constraints.known); n != 1 {
		t.Errorf("%d grammars are remembered", n)
	}
}
