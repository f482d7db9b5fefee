package tokenizer

// Mistral's tekken.json, which also stands for a chat template.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// readTekken reads Mistral's file. Ids begin with the special tokens.
func (f *files) readTekken() (*made, error) {
	type special struct {
		Rank    int64  `json:"rank"`
		Text    string `json:"token_str"`
		Control *bool  `json:"is_control"`
	}
	var file struct {
		Config struct {
			Pattern  string `json:"pattern"`
			Size     int    `json:"default_vocab_size"`
			Specials int    `json:"default_num_special_tokens"`
			Version  string `json:"version"`
		} `json:"config"`
		Vocab []struct {
			Rank  int    `json:"rank"`
			Bytes []byte `json:"token_bytes"`
		} `json:"vocab"`
		Specials []special `json:"special_tokens"`
	}
	if err := json.Unmarshal(f.Tekken, &file); err != nil {
		return nil, jsonError(err)
	}
	c := file.Config
	if n := len(file.Vocab); c.Specials < 0 || c.Size <= c.Specials || c.Size-c.Specials > n || c.Specials > maxTokens {
		return nil, fmt.Errorf("config: default_vocab_size %d with %d special tokens and %d others", c.Size, c.Specials, n)
	}
	tokens := make([]string, c.Size-c.Specials)
	for i := range tokens {
		if file.Vocab[i].Rank != i {
			return nil, fmt.Errorf("vocab: entry %d has the rank %d: want ranks in order", i, file.Vocab[i].Rank)
		}
		tokens[i] = string(file.Vocab[i].Bytes)
	}
	if file.Specials == nil { // they were not in the file up to version 7
		for i, text := range strings.Fields(tekkenSpecials) {
			file.Specials = append(file.Specials, special{Rank: int64(i), Text: text})
		}
	}
	f.BOS, f.EOS = "<s>", "</s>"
	m := &made{bos: f.BOS}
	if err := m.addRanks(tokens, c.Specials, c.Pattern); err != nil {
		return nil, err
	}
	have := map[int64]bool{}
	for _, t := range file.Specials {
		m.added = append(m.added, addedToken{ID: t.Rank, Content: t.Text, Special: t.Control == nil || *t.Control})
		have[t.Rank] = true
	}
	for id := range int64(c.Specials) {
		if !have[id] {
			m.added = append(m.added, addedToken{ID: id, Content: fmt.Sprintf("<SPECIAL_%d>", id), Special: true})
		}
	}
	if version, err := strconv.Atoi(strings.TrimPrefix(c.Version, "v")); err == nil {
		thinks := slices.ContainsFunc(m.added, func(a addedToken) bool { return a.Content == "[THINK]" })
		f.Template = tekkenTemplate(version, thinks)
	}
	return m, nil
}

// tekkenSpecials are the special tokens of files that do not list theirs.
const tekkenSpecials = `<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS]
	[TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]`

// tekkenTemplate is the chat template of a version of Mistral's tokenizer, as mistral-common lays conversations out, or
// "" for versions whose models have a template of their own.
func tekkenTemplate(version int, thinks bool) string {
	if version < 3 || version > 13 {
		return ""
	}
	pick := func(from int, then, before string) string {
		if version >= from {
			return then
		}
		return before
	}
	tools := `{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{%- endif %}`
	early, late := pick(13, tools, ""), pick(13, "", `{%- if m is sameas ns.last %}`+tools+`{%- endif %}`)
	return strings.NewReplacer("\n", "", "\t", "").Replace(`{%- set ns = namespace(last=none, system='', begun=false) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = m %}{%- endif %}{%- endfor %}
{{- bos_token }}
{%- for m in messages %}
	{%- if m.role == 'system' or m.role == 'developer' %}` +
		pick(7, `[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]`,
			`{%- set ns.system = ns.system + m.content + '\n\n' %}`) + `
	{%- else %}` +
		pick(13, `{%- if not ns.begun %}`+early+`{%- set ns.begun = true %}{%- endif %}`, "") + `
		{%- if m.role == 'user' %}
			{%- if loop.previtem and loop.previtem.role == 'user' %}{{- '\n\n' }}{%- else %}` + late + `[INST]{%- endif %}` +
		pick(7, "", `{%- if m is sameas ns.last %}{{- ns.system }}{%- endif %}`) + `{{- m.content }}
			{%- if not loop.nextitem or loop.nextitem.role != 'user' %}[/INST]{%- endif %}
		{%- elif m.role == 'assistant' %}` +
		map[bool]string{true: `{%- if m.reasoning_content %}[THINK]{{ m.reasoning_content }}[/THINK]{%- endif %}`}[thinks] + `
			{%- if m.content %}{{- m.content }}{%- endif %}
			{%- if m.tool_calls %}` +
		pick(11, "", `[TOOL_CALLS][`) + `
				{%- for c in m.tool_calls %}
					{%- set a = c.function.arguments %}{%- set a = a if a is string else a | tojson %}` +
		pick(13, "", `{%- if c.id | length != 9 %}{{- raise_exception('ids have nine letters and digits') }}{%- endif %}`) +
		pick(11, `[TOOL_CALLS]{{ c.function.name }}`+pick(13, "", `[CALL_ID]{{ c.id }}`)+`[ARGS]{{ a }}`,
			`{{- '{"name": ' + c.function.name | tojson + ', "arguments": ' + a + ', "id": "' + c.id + '"}' }}
				{%- if not loop.last %}{{- ', ' }}{%- endif %}`) + `
				{%- endfor %}` +
		pick(11, "", `]`) + `
			{%- endif %}{{- eos_token }}
		{%- elif m.role == 'tool' %}[TOOL_RESULTS]` +
		pick(13, `{{ m.content }}`, pick(7, `{{ m.tool_call_id }}[TOOL_CONTENT]{{ m.content }}`,
			`{{- '{"content": ' + m.content | tojson + ', "call_id": "' + m.tool_call_id + '"}' }}`)) + `[/TOOL_RESULTS]
		{%- else %}{{- raise_exception('messages have the roles system, user, assistant and tool') }}
		{%- endif %}
	{%- endif %}
{%- endfor %}`)
}
