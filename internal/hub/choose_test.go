package hub

import (
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

func filesOf(names string) (files []File) {
	for _, name := range strings.Fields(names) {
		files = append(files, File{Path: name})
	}
	return files
}

func TestChoose(t *testing.T) {
	const repo = `README.md mmproj-F16.gguf M-IQ9_XXS.gguf M-Q3_K_M.gguf M-Q4_K_S.gguf M-Q4_K_M.gguf M-Q5_K_M.gguf
		M-UD-Q4_K_XL.gguf M-Q8_0.gguf M.mmproj-Q6_K.gguf BF16/M-BF16-00001-of-00002.gguf BF16/M-BF16-00002-of-00002.gguf M.imatrix.gguf`
	const folder = "config.json tokenizer.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors pytorch_model.bin"
	for _, x := range []struct{ files, what, path, fails string }{
		{repo, "", "M-Q4_K_M.gguf", ""},
		{repo, "q4_k_m", "M-Q4_K_M.gguf", ""},
		{repo, "Q4_K", "M-Q4_K_M.gguf", ""},
		{repo, "M-Q8_0.gguf", "M-Q8_0.gguf", ""},
		{repo, "m-q8_0", "M-Q8_0.gguf", ""},
		{repo, "/m-q8_0", "M-Q8_0.gguf", ""},
		{repo, "UD-Q4_K_XL", "M-UD-Q4_K_XL.gguf", ""},
		{repo, "bf16", "BF16/M-BF16-00001-of-00002.gguf", ""},
		{repo, "BF16/M-BF16-00001-of-00002.gguf", "BF16/M-BF16-00001-of-00002.gguf", ""},
		{repo, "iq9_xxs", "", "does not run type IQ9_XXS"},
		{repo, "Q6_K", "", "there is no Q6_K: want Q4_K_M, Q4_K_S, Q5_K_M, Q8_0, BF16"},
		{repo, "safetensors", "", "there is no safetensors"},
		{"a.gguf b.gguf", "", "a.gguf", ""},
		{"a.gguf b.gguf", "c", "", "want a.gguf, b.gguf"},
		{"qwen2.5-7b-instruct-q5_0.gguf qwen2.5-7b-instruct-fp16.gguf", "f16", "qwen2.5-7b-instruct-fp16.gguf", ""},
		{"Q8_0/model.gguf", "q8_0", "Q8_0/model.gguf", ""},
		{"gpt-oss-20b-mxfp4.gguf", "", "gpt-oss-20b-mxfp4.gguf", ""},
		{"M-MXFP4_MOE.gguf M-UD-Q8_K_XL.gguf", "mxfp4", "M-MXFP4_MOE.gguf", ""},
		{"M-UD-Q8_K_XL.gguf", "Q8_K_XL", "M-UD-Q8_K_XL.gguf", ""},
		{"M-Q8_0_L.gguf", "", "M-Q8_0_L.gguf", ""},
		{"M-IQ2_M.gguf M-IQ3_XS.gguf M-IQ3_M.gguf", "IQ3_M", "M-IQ3_M.gguf", ""},
		{"M-IQ2_M.gguf M-IQ3_XS.gguf", "IQ3_XS", "M-IQ3_XS.gguf", ""},
		{"M-IQ2_M.gguf M-NVFP4.gguf", "", "M-IQ2_M.gguf", ""},
		{"M-Q4_0_4_4.gguf", "", "", "does not run type Q4_0_4_4"},
		{"M-IQ9_XXS.gguf", "", "", "does not run type IQ9_XXS"},
		{"M-Q4_0-00001-of-00003.gguf M-Q4_0-00003-of-00003.gguf", "", "", "2 of 3 parts"},
		{"M-Q4_0-00001-of-00002.gguf M-Q8_0.gguf M-Q8_0-00002-of-00002.gguf", "", "M-Q8_0.gguf", ""},
		{"M-Q4_0-00001-of-00002.gguf M-Q8_0.gguf", "q4_0", "", "1 of 2 parts"},
		{folder, "", ".", ""},
		{folder + " m-Q8_0.gguf", "", "m-Q8_0.gguf", ""},
		{folder + " m-Q8_0.gguf", "safetensors", ".", ""},
		{folder + " m-IQ9_S.gguf", "", ".", ""},
		{"config.json model-00001-of-00002.safetensors", "", "", "1 of 2 parts"},
		{"config.json pytorch_model.bin", "", ".", ""},
		{"config.json model.safetensors-00001-of-00001.safetensors", "", ".", ""},
		{"config.json model.safetensors-00001-of-00002.safetensors", "", "", "1 of 2 parts"},
		{"config.json model-00001-of-000002.safetensors model-00002-of-000002.safetensors", "", ".", ""},
		{"config.json model-00000-of-00002.safetensors model-00001-of-00002.safetensors model-00002-of-00002.safetensors", "",
			".", ""},
		{"config.json model-00000-of-00002.safetensors model-00001-of-00002.safetensors", "", ".", ""},
		{"config.json model-00000-of-00002.safetensors", "", "", "1 of 2 parts"},
		{"config.json model-1-of-2.safetensors model-2-of-2.safetensors", "", ".", ""},
		{"config.json model-00001-of-000002.safetensors", "", "", "1 of 2 parts"},
		{"config.json model.safetensors.index.json", "", "", "no model"},
		{"config.json medusa_lm_head.pt", "", ".", ""},
		{"config.json medusa_lm_head.safetensors", "safetensors", ".", ""},
		{"config.json", "", "", "no model"},
		{"model.safetensors", "", "", "no model"},
		{"", "", "", "no model"},
	} {
		m, err := Choose(filesOf(x.files), x.what)
		switch {
		case x.fails == "" && (err != nil || m.Path != x.path):
			t.Errorf("%q of %.40q: %s, %v, want %s", x.what, x.files, m.Path, err, x.path)
		case x.fails != "" && (err == nil || !strings.Contains(err.Error(), x.fails)):
			t.Errorf("%q of %.40q: %v, want %s", x.what, x.files, err, x.fails)
		}
	}
	m, err := Choose(filesOf(folder+" grove.json additional_chat_templates/tool_use.jinja 1_Pooling/config.json"), "")
	if err != nil || len(m.Files) != 7 || m.Files[4].Path != Manifest {
		t.Errorf("%+v, %v", m.Files, err)
	}
	// Qwen's folders in FP8 have shards without numbers; Mistral's have all weights twice.
	for names, want := range map[string]int{
		"layers-0.safetensors layers-1.safetensors mtp.safetensors outside.safetensors":                     6,
		"model-00001-of-00002.safetensors model-00002-of-00002.safetensors model_mtp.safetensors":           5,
		"model-00001-of-00001.safetensors consolidated.safetensors consolidated-00001-of-00002.safetensors": 3,
	} {
		m, err := Choose(filesOf("config.json model.safetensors.index.json "+names), "")
		if err != nil || len(m.Files) != want {
			t.Errorf("%s: %+v, %v", names, m.Files, err)
		}
	}
}

// A name stays inside the cache, whatever it is.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a/b", "org/re.po:Q4_K_M", "../b", "a/..", "a--b/c", "a/b/c", "/a/b", "./a", "a/b:",
		`c:\x`, "a/b:c/d.gguf"} {
		f.Add(s)
	}
	c := New("http://none", filepath.FromSlash("cache/hub"))
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseName(text)
		if !ok {
			return
		}
		if n.String() != text {
			t.Errorf("%q is read as %q", text, n)
		}
		dir := c.folder(n.Repo)
		if filepath.Dir(dir) != filepath.FromSlash("cache/hub") || strings.Count(filepath.Base(dir), "--") != 2 {
			t.Errorf("%q is in %s", text, dir)
		}
	})
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]bool{
		"Qwen/Qwen3-8B-GGUF:Q4_K_M": true, "a/b": true, "a/b.gguf": true, "a": false, "a/b/c": false,
		"./a": false, "../a": false,
		"a/b:": false, "a/b--c": false, "/a": false, "": false, "a/ b": false, "a/.b": false, "a/b.": false,
	} {
		if _, ok := ParseName(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
	for address, want := range map[string]string{
		"hf.co/a/b": "a/b", "hf.co/a/b:Q4_K_M": "a/b:Q4_K_M", "huggingface.co/a/b": "a/b",
		"https://huggingface.co/a/b/": "a/b", "https://huggingface.co/a/b/resolve/main/sub/c.gguf?download=true": "a/b:sub/c.gguf",
		"https://hf.co/a/b/blob/main/c-Q8_0.gguf": "a/b:c-Q8_0.gguf", "https://hf.co/a": "", "https://example.com/a/b": "",
		"https://hf.co/a/b/tree/main": "a/b", "https://hf.co/a/b?local-app=x": "a/b",
		"https://hf.co/a/b/tree/other": "", "https://hf.co/a/b/blob/main/c%20d%2B1.gguf": "a/b:c d+1.gguf",
		"hf.co/a/b:100%.gguf": "a/b:100%.gguf",
	} {
		if n, ok := ParseName(address); ok != (want != "") || ok && n.String() != want {
			t.Errorf("%q: %v, %v, want %q", address, n, ok, want)
		}
	}
}

// The environment is read as the hub's Python library reads it.
func TestFromEnv(t *testing.T) {
	home := t.TempDir()
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ env, cache, token, endpoint string }{
		{"", "~/.cache/huggingface/hub", "", "https://huggingface.co"},
		{"XDG_CACHE_HOME=/x", "/x/huggingface/hub", "", "https://huggingface.co"},
		{"HF_HOME=~/h XDG_CACHE_HOME=/x", "~/h/hub", "", "https://huggingface.co"},
		{"HF_HUB_CACHE=$HF_HOME/c HF_HOME=/h HUGGINGFACE_HUB_CACHE=/o", "/h/c", "", "https://huggingface.co"},
		{"HUGGINGFACE_HUB_CACHE=/o HF_ENDPOINT=https://mirror/", "/o", "", "https://mirror"},
		{"HF_HOME=" + home, home + "/hub", "from-file", "https://huggingface.co"},
		{"HF_HOME=" + home + " HF_TOKEN=given", home + "/hub", "given", "https://huggingface.co"},
		{"HF_HOME=" + home + " HF_HUB_DISABLE_IMPLICIT_TOKEN=1", home + "/hub", "", "https://huggingface.co"},
		{"HF_TOKEN_PATH=" + home + "/token", "~/.cache/huggingface/hub", "from-file", "https://huggingface.co"},
		{"HF_ENDPOINT=mirror", "", "", ""},
		{"HOME= USERPROFILE=", account.HomeDir + "/.cache/huggingface/hub", "", "https://huggingface.co"},
	} {
		t.Run(x.env, func(t *testing.T) {
			empty := t.TempDir()
			for _, name := range strings.Fields(`HF_HOME XDG_CACHE_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_ENDPOINT HF_TOKEN HUGGING_FACE_HUB_TOKEN
				HF_TOKEN_PATH HF_HUB_DISABLE_IMPLICIT_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE`) {
				t.Setenv(name, "")
			}
			t.Setenv("HOME", empty)
			t.Setenv("USERPROFILE", empty)
			for _, v := range strings.Fields(x.env) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			writeFile(t, filepath.Join(home, "token"), " from-file\n")
			c, err := FromEnv()
			if x.cache == "" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(x.cache, "~", empty, 1); filepath.ToSlash(c.Cache) != filepath.ToSlash(want) ||
				c.Token != x.token || c.Endpoint != x.endpoint {
				t.Errorf("cache %s, token %s, endpoint %s", c.Cache, c.Token, c.Endpoint)
			}
		})
	}
}

// Other files with a tokenizer are fetched where there is no tokenizer.json.
func TestChooseTokenizer(t *testing.T) {
	const others = "config.json model.safetensors tekken.json tokenizer.model tiktoken.model"
	for files, want := range map[string]int{others: 5, others + " tokenizer.json": 3} {
		if m, err := Choose(filesOf(files), ""); err != nil || len(m.Files) != want {
			t.Errorf("of %s: %v, %v, want %d files", files, m.Files, err, want)
		}
	}
}
