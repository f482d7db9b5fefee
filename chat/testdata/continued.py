# Writes continued.json: what transformers' continue_final_message makes of conversations that end in the assistant's turn,
# with the templates beside this file.
#
#     pip install transformers jinja2
#     python continued.py > continued.json

import datetime
import json
import pathlib

import transformers
from transformers.utils.chat_template_utils import render_jinja_template

here = pathlib.Path(__file__).parent
contents = ["Sure: ", "  two\nlines", "a \n\n", "x<|im_end|>", '{"a": ', "é", "Hi", "a{{ b }}", "<s>"]
rendered = []
for path in sorted((here / "templates").iterdir()):
    source = path.read_text().replace("\r\n", "\n")
    for content in contents:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]
        text = render_jinja_template([messages], chat_template=source, continue_final_message=True,
                                     bos_token="<s>", eos_token="</s>")[0][0]
        today = datetime.datetime.now().strftime("%d %b %Y")
        rendered.append({"template": path.name, "content": content, "text": text.replace(today, "21 Nov 2026")})
print(json.dumps({"transformers": transformers.__version__, "rendered": rendered}, indent=1, ensure_ascii=False))
