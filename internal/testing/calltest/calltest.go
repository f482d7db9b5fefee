// Package calltest has helpers for tests of calls of tools: chat templates that write calls in every known form.
package calltest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove/tokenizer"
)

// Templates maps names to chat templates. Models that share a form of calls share a name.
var Templates = map[string]string{}

// around is a template around the calls of a turn.
const around = "{% for t in tools or [] %}tool {{ t | tojson }}\n{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ TEXT }}" +
	"{% if m.tool_calls %}CALLS{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"

// each writes the calls of a turn one by one; NAME and ARGUMENTS stand for each call's.
func each(call string) string { return "{% for c in m.tool_calls %}" + call + "{% endfor %}" }

// pairs writes arguments one by one; KEY and VALUE stand for each argument's.
func pairs(text, other string) string {
	return "{% for k, v in ARGUMENTS.items() %}{% if v is string %}" + text + "{% else %}" + other +
		"{% endif %}{% endfor %}"
}

func comma(separator string) string {
	return "{% if not loop.last %}{{ '" + separator + "' }}{% endif %}"
}

func init() {
	object := `{"name": "NAME", "arguments": JSON}`
	tagged := func(open, end string) string { return pairs(open+"VALUE"+end, open+"JSON VALUE"+end) }
	for name, calls := range map[string]string{
		"hermes":       each("{{ '\\n' }}<tool_call>\n" + object + "\n</tool_call>"),
		"hermes-tight": each("<tool_call>" + object + "</tool_call>"),
		"mistral":      "[TOOL_CALLS][" + each(`{"name": "NAME", "arguments": JSON, "id": "ID"}`+comma(", ")) + "]",
		"mistral-args": each("[TOOL_CALLS]NAME[ARGS]JSON"),
		"mistral-ids":  each("[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]JSON"),
		"llama": "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call alone') }}{% endif %}" +
			each(`{"name": "NAME", "parameters": JSON}`),
		"llama-4":    "<|python_start|>{{ m.content }}<|python_end|>" + each(`{"name": "NAME", "parameters": JSON}`),
		"python-tag": each(`<|python_tag|>{"name": "NAME", "parameters": JSON}`),
		"qwen-coder": each("{{ '\\n' }}<tool_call>\n<function=NAME>\n" + tagged("<parameter=KEY>\n", "\n</parameter>\n") +
			"</function>\n</tool_call>"),
		"qwen-words": each("{{ '\\n' }}<tool_call>\n<function=NAME>\n" + pairs("<parameter=KEY>\nVALUE\n</parameter>\n",
			"<parameter=KEY>\n{% if v is mapping or v is sequence %}JSON VALUE{% else %}{{ 'None' if v is none else 'True' if v is true else 'False' if v is false else v }}{% endif %}{{ '\\n' }}</parameter>\n") +
			"</function>\n</tool_call>"),
		"glm": each("{{ '\\n' }}<tool_call>NAME\n" + tagged("<arg_key>KEY</arg_key>\n<arg_value>",
			"</arg_value>\n") + "</tool_call>"),
		"minimax": "\n<calls>\n" + each(`<invoke name="NAME">`+"\n"+tagged(`<parameter name="KEY">`,
			"</parameter>\n")+"</invoke>\n") +
			"</calls>",
		"elements": "]:tag:[<calls>\n" + each(`]:tag:[<invoke name="NAME">{{ xml(ARGUMENTS) }}]:tag:[</invoke>`+"\n") +
			"]:tag:[</calls>",
		"dsml": "\n\n<｜DSML｜calls>\n" + each(`<｜DSML｜invoke name="NAME">`+"\n"+
			pairs(`<｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>`+"\n",
				`<｜DSML｜parameter name="KEY" string="false">JSON VALUE</｜DSML｜parameter>`+"\n")+"</｜DSML｜invoke>\n") + "</｜DSML｜calls>",
		"cdata": each(`<function name="NAME">` + pairs(`<param name="KEY">{% if '"' in v or '<' in v or '\n' in v %}<![CDATA[VALUE]]>{% else %}VALUE{% endif %}</param>`,
			`<param name="KEY">JSON VALUE</param>`) + "</function>"),
		"gptoss": strings.ReplaceAll(each(" to=functions.NAME<|channel|>commentary json<|message|>JSON<|call|>"),
			"m.tool_calls", "m.tool_calls[:1]"),
		"deepseek-r1": "<｜calls▁begin｜>" + each("<｜call▁begin｜>function<｜sep｜>NAME\n```json\nJSON\n```<｜call▁end｜>"+comma("\\n")) +
			"<｜calls▁end｜>",
		"deepseek": "<｜calls▁begin｜>" + each("<｜call▁begin｜>NAME<｜sep｜>JSON<｜call▁end｜>") + "<｜calls▁end｜>",
		"kimi": "<|calls_begin|>" + each("<|call_begin|>functions.NAME:{{ loop.index0 }}<|argument_begin|>JSON<|call_end|>") +
			"<|calls_end|>",
		"kimi-ids":      "<|calls_begin|>" + each("<|call_begin|>ID<|argument_begin|>JSON<|call_end|>") + "<|calls_end|>",
		"bare":          each("NAME(JSON)" + comma("\\n")),
		"functionary":   each("<function=NAME>JSON</function>"),
		"functionary-2": each(">>>NAME\nJSON"),
		"cohere": "<|START_ACTION|>[\n" + each(`    {"tool_call_id": "{{ loop.index0 }}", "tool_name": "NAME", "parameters": JSON}`+comma(",\\n")) +
			"\n]<|END_ACTION|>",
		"nemotron": "<TOOLCALL>[" + each(object+comma(", ")) + "]</TOOLCALL>",
		"apertus":  "<|tools_prefix|>[" + each(`{"NAME": JSON}`+comma(", ")) + "]<|tools_suffix|>",
		"firefunc": " functools[" + each(object+comma(", ")) + "]",
		"command-r": "Action: ```json\n[\n" + each("    {\n"+`        "tool_name": "NAME",`+"\n"+`        "parameters": JSON`+
			"\n    }"+comma(",\\n")) + "\n]```",
		"lfm": "<|calls_start|>[" + each("NAME("+pairs("KEY='VALUE'"+comma(", "), "KEY=JSON VALUE"+comma(", "))+")"+
			comma(", ")) + "]<|calls_end|>",
		"minicpm": "<|calls_start|>\n```python\n" + each("NAME({% for k, v in ARGUMENTS.items() %}KEY=JSON VALUE"+comma(",")+
			"{% endfor %})\n") + "```\n<|calls_end|>",
		"gemma": each("<|tool_call>call:NAME{{ '{' }}" + pairs(`KEY:<|"|>VALUE<|"|>`+comma(","), "KEY:{{ bare(v) }}"+
			comma(",")) + "}<tool_call|>"),
		"solar":       "<|tool_calls|>" + each("<|call:begin|>ID<|call:name|>NAME<|call:args|>JSON<|call:end|>"),
		"json-string": each("<tool_call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</tool_call>"),
	} {
		text := "m.content or ''"
		text = strings.Replace(around, "TEXT", text, 1)
		switch name {
		case "llama-4":
			text = strings.Replace(text, "{{ m.content or '' }}", "{{ m.content if not m.tool_calls }}", 1)
		case "functionary-2":
			text = strings.NewReplacer("{{ m.content or '' }}",
				"{% if m.content %}{% if m.role == 'assistant' %}>>>all\n{% endif %}{{ m.content }}{% endif %}").Replace(text)
			text = strings.Replace(text, "<|assistant|>{% endif %}", "<|assistant|>>>>{% endif %}", 1)
		case "command-r":
			text = strings.Replace(text, "<|assistant|>{% endif %}", "<|system|>Act.<|im_end|>\n<|assistant|>{% endif %}", 1)
		case "gptoss":
			text = strings.Replace(text, "<|im_end|>", "<|return|>", 1)
			text = strings.Replace(text, "{{ m.content or '' }}", "{% if m.content %}{% if m.role != 'assistant' %}{{ m.content }}{% elif m.tool_calls %}"+
				"<|channel|>analysis<|message|>{{ m.content }}<|end|><|assistant|>{% else %}<|channel|>final<|message|>{{ m.content }}{% endif %}{% endif %}", 1)
		case "elements":
			text = "{% macro xml(v) %}{% if v is mapping %}{% for k, w in v.items() %}]:tag:[<{{ k }}>{{ xml(w) }}]:tag:[</{{ k }}>{% endfor %}" +
				"{% elif v is string %}{{ v }}{% elif v is iterable %}{% for w in v %}]:tag:[<item>{{ xml(w) }}]:tag:[</item>{% endfor %}" +
				"{% else %}{{ v | tojson }}{% endif %}{% endmacro %}" + text
		case "gemma":
			text = `{% macro bare(v) %}{% if v is string %}<|"|>{{ v }}<|"|>{% elif v is none %}null{% elif v is mapping %}{{ '{' }}` +
				"{% for k, w in v.items() %}{{ k }}:{{ bare(w) }}" + comma(",") +
				"{% endfor %}}{% elif v is boolean or v is number %}{{ v | tojson }}" +
				"{% else %}[{% for w in v %}{{ bare(w) }}" + comma(",") + "{% endfor %}]{% endif %}{% endmacro %}" + text
		}
		Templates[name] = strings.NewReplacer("JSON VALUE", "{{ v | tojson }}", "VALUE", "{{ v }}", "KEY", "{{ k }}", "NAME",
			"{{ c.function.name }}",
			"JSON", "{{ c.function.arguments | tojson }}", "ARGUMENTS", "c.function.arguments", "\"ID\"", `"{{ c.id }}"`,
			"]ID[", "]{{ c.id }}[",
			">ID<", ">{{ c.id }}<").Replace(strings.Replace(text, "CALLS", calls, 1))
	}
}

// Plain maps names to chat templates that write no calls, or write them in a form that cannot be
// read: some are strict about the order of messages.
var Plain = map[string]string{
	"chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
	"own-system": "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nYou are kind.<|im_end|>\n{% endif %}" +
		"<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
	"no-system": "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}" +
		"{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}" +
		"<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}" +
		"{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
	"inst": "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}[INST] {{ m.content }} [/INST]" +
		"{% elif m.role == 'assistant' %} {{ m.content }}{{ eos_token }}{% else %}{{ raise_exception('role') }}{% endif %}{% endfor %}",
	"transcript": "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}\n\n{% else %}{{ m.role | capitalize }}: {{ m.content }}\n{% endif %}{% endfor %}" +
		"{% if add_generation_prompt %}Assistant:{% endif %}",
	"lists-tools": "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}" +
		"<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
	"refuses-tools": "{% if tools %}{{ raise_exception('no tools') }}{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}" +
		"{% if add_generation_prompt %}<|assistant|>{% endif %}",
	"names-alone": "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}called {{ c.function.name }}{% endfor %}</s>{% endfor %}" +
		"{% if add_generation_prompt %}<|assistant|>{% endif %}",
}

// marks matches text that looks like a model's control tokens.
var marks = regexp.MustCompile(`<\|[^|<>{}' ]+\|?>|<\|"\|>|<[a-z_]+\|>|<｜[^｜<>{}' ]+｜>|\[/?[A-Z_]{3,}\]|\]:tag:\[`)

// Tokenizer returns a tokenizer of bytes. If control is set, text of the template that looks like control tokens
// becomes control tokens.
func Tokenizer(t testing.TB, template string, control bool) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ') {
			r = next
			next++
		}
		vocab[string(r)] = b
	}
	names, seen := []string{"<s>", "</s>"}, map[string]bool{}
	if control {
		for _, name := range marks.FindAllString(template, -1) {
			if !seen[name] {
				names = append(names, name)
			}
			seen[name] = true
		}
	}
	var added []any
	for i, s := range names {
		added = append(added, map[string]any{"id": 256 + i, "content": s, "special": true})
	}
	step := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
	b, err := json.Marshal(map[string]any{"added_tokens": added, "pre_tokenizer": step, "decoder": step,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse("bytes", map[string][]byte{"tokenizer.json": b,
		"tokenizer_config.json": []byte(`{"bos_token": "<s>", "eos_token": "</s>"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
