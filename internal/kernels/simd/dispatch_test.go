//go:build amd64 && !purego

package simd

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// A kernel that falls back to portable code is right, and slow, and no other test would
// notice. So: the processor's own list of features must give the level we think it has, the dispatch must
// reach the assembly of that level, and the assembly must keep to the level's instructions.

func TestProcessorLevelIsFound(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip("no /proc/cpuinfo: nothing to compare with")
	}
	line := regexp.MustCompile(`(?m)^flags\s*:(.*)$`).FindSubmatch(info)
	if line == nil {
		t.Skip("no flags in /proc/cpuinfo")
	}
	flags := strings.Fields(string(line[1]))
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(flags, n) })
	}
	want := cpu.Portable
	if has("avx2", "fma", "f16c") {
		want = cpu.AVX2
		if has("avx_vnni") {
			want = cpu.AVXVNNI
		}
		if has("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni") {
			want = cpu.AVX512
			if has("avx512_bf16") {
				want = cpu.AVX512BF16
			}
		}
	}
	if got := cpu.Best(); got != want {
		t.Errorf("the best level is %v; the flags of /proc/cpuinfo give %v", got, want)
	}
	if ls := cpu.Levels(); ls[len(ls)-1] != want {
		t.Errorf("the levels tested are %v, up to %v is claimed", ls, want)
	}
}

func TestDispatchReachesEveryKernel(t *testing.T) {
	kernels := map[string]bool{} // declared without a body: assembly
	for _, fn := range parse(t, "stubs_amd64.go") {
		if fn.Body != nil {
			t.Errorf("%s has a body", fn.Name.Name)
		}
		kernels[fn.Name.Name] = false
	}
	order := []struct{ level, suffix string }{{"AVX512", "AVX512"}, {"AVX2", "AVX2"}, {"", "Generic"}}
	for _, fn := range parse(t, "dispatch_amd64.go") {
		name := fn.Name.Name
		sw, ok := fn.Body.List[0].(*ast.SwitchStmt)
		if !ok || len(fn.Body.List) != 1 || len(sw.Body.List) != len(order) {
			t.Errorf("%s is not one switch over the levels", name)
			continue
		}
		for i, want := range order {
			c := sw.Body.List[i].(*ast.CaseClause)
			if want.level == "" != (c.List == nil) {
				t.Errorf("%s: case %d: want level %q", name, i, want.level)
			} else if c.List != nil {
				cmp, ok := c.List[0].(*ast.BinaryExpr)
				if !ok || cmp.Op != token.GEQ || cmp.Y.(*ast.SelectorExpr).Sel.Name != want.level {
					t.Errorf("%s: case %d does not ask for %s", name, i, want.level)
				}
			}
			called := ""
			ast.Inspect(c, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok {
						called += id.Name
					}
				}
				return true
			})
			if called != name+want.suffix {
				t.Errorf("%s: case %d calls %s, want %s", name, i, called, name+want.suffix)
			}
			if _, ok := kernels[called]; !ok && want.level != "" {
				t.Errorf("%s is not assembly", called)
			}
			kernels[called] = true
		}
	}
	for name, reached := range kernels {
		if !reached {
			t.Errorf("nothing calls %s", name)
		}
	}
}

func TestKernelsKeepToTheirLevel(t *testing.T) {
	allowed := map[string][]string{"AVX2": {"SSE", "SSE2", "AVX", "AVX2", "FMA3", "F16C"}}
	allowed["AVX512"] = append([]string{"AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL"}, allowed["AVX2"]...)
	files, _ := filepath.Glob("*_amd64.s")
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		requires := ""
		level := ""
		for _, line := range strings.Split(string(text), "\n") {
			switch {
			case strings.HasPrefix(line, "// Requires: "):
				requires = strings.TrimPrefix(line, "// Requires: ")
			case strings.HasPrefix(line, "TEXT "):
				n++
				name := line[:strings.IndexByte(line, '(')]
				level = "AVX512"
				if strings.HasSuffix(name, "AVX2") {
					level = "AVX2"
				} else if !strings.HasSuffix(name, "AVX512") {
					t.Errorf("%s: %s names no level", file, name)
				}
				for _, r := range strings.Split(requires, ", ") {
					if !slices.Contains(allowed[level], r) {
						t.Errorf("%s: %s requires %s", file, name, r)
					}
				}
				requires = ""
			case level == "AVX2" && wide.MatchString(line):
				t.Errorf("%s: at level AVX2: %s", file, line)
			}
		}
	}
	if want := len(parse(t, "stubs_amd64.go")); n != want {
		t.Errorf("%d kernels in %v, %d declared", n, files, want)
	}
}

// wide matches what only AVX-512 encodes: 512-bit, high and mask registers, broadcasts.
var wide = regexp.MustCompile(`\bZ[0-9]|\b[XY](1[6-9]|2[0-9]|3[01])\b|\bK[0-7]\b|\.BCST|\.Z\b`)
