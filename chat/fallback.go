package chat

// Layouts for models without a template.

const textAlone = `{%- for message in messages -%}
{%- if message.content is not string -%}{{ raise_exception('the model has no chat template, so content must be text') }}{%- endif -%}
{%- endfor -%}
`

const chatML = textAlone + `{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}`

const transcript = textAlone + `{%- for message in messages -%}
{%- if message.role == 'system' -%}{{ message.content + '\n\n' }}
{%- else -%}{{ message.role | capitalize + ': ' + message.content + '\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant:' }}{%- endif -%}`

func (l *Layout) fallback() {
	source := transcript
	l.about = "a plain transcript (the model has no chat template)"
	l.stop = []string{"\nUser:"}
	if start, ok := l.tok.Find("<|im_start|>"); ok && l.tok.IsSpecial(start) {
		if end, ok := l.tok.Find("<|im_end|>"); ok && l.tok.IsSpecial(end) {
			source, l.stop = chatML, nil
			l.about = "ChatML (the model has no chat template, but has ChatML's tokens)"
		}
	}
	if err := l.add("default", source); err != nil {
		panic(err) // the two texts above compile
	}
}
