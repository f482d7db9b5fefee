"""Writes fastmtp/NAME-head: layers of random weights as vLLM's speculators package (0.9.0) saves its mtp
heads, with what they draft (logits.json), for models of golden.py and for fastmtp/tiny-qwen3, which this script writes.

    python fastmtp.py

The package's own layer computes what is here. first is the logits of its forward, which has one step for each row of the text.
The drafts behind the text are as vLLM serves such a layer in its target's folder: each row behind the others, at the next
position, from the state that drafted it, the first from the target's state after its last norm. The package's forward, which
trains, has a text of its own for each later step instead.
"""
import json
import sys

sys.path.insert(0, "../../../testing/testdata")
from speculator import proposals, save  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402
from speculators.models.mtp import MTPDraftModel, MTPSpeculatorConfig  # noqa: E402

torch.set_grad_enabled(False)
torch.set_num_threads(1)
PLAIN = {"tiny-qwen3"}  # whose norms are w and not 1 + w


def randomise(module, ones, seed):
    generator = torch.Generator().manual_seed(seed)
    for p in module.parameters():
        noise = torch.randn(p.shape, generator=generator)
        p.copy_(noise * 0.2 + (1.0 if ones else 0.0) if p.dim() == 1 else noise * 2.0 / p.shape[-1] ** 0.5)


def target(name):
    if name == "tiny-qwen3":
        config = transformers.Qwen3Config(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                          num_key_value_heads=2, head_dim=16, max_position_embeddings=512, tie_word_embeddings=False)
        model = transformers.Qwen3ForCausalLM(config)
        randomise(model, True, 1)
        model.save_pretrained("fastmtp/" + name)
        import os
        os.remove(f"fastmtp/{name}/generation_config.json")
        return model.eval()
    return transformers.AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager").eval()


def draft(head, model, text, count):
    """Returns the head's logits of the rows of a text, and the tokens that it drafts behind it."""
    states = model.model(torch.tensor([text[:-1]])).last_hidden_state
    embed = head.embed_tokens.weight
    first = head(torch.tensor([text + [0]]), states)[0][0][0, :len(text) - 2]
    tokens, embeddings = torch.tensor(text[1:]), [embed[t] for t in text[1:]]
    hidden = list(states[0])
    drafts, logs = [], []
    for _ in range(count):
        n = len(hidden)
        places = torch.arange(1, n + 1)[None]
        turned = places[None].expand(3, -1, -1) if model.config.model_type == "qwen3_5_text" else places
        h = torch.stack(hidden)[None]
        out = head.mtp_layers[0](h, torch.stack(embeddings)[None], attention_mask=torch.full((1, 1, n, n), float("-inf")).triu(1),
                                 position_ids=places, position_embeddings=head.rotary_emb(h, turned))[0, -1]
        p = torch.log_softmax(head.lm_head(out).double(), -1)
        drafts.append(int(p.argmax()))
        logs.append(round(float(p.max()), 6))
        hidden.append(out)
        embeddings.append(embed[drafts[-1]])
    return first, drafts, logs


for seed, name in enumerate(["tiny-qwen3", "tiny-qwen35-mtp", "tiny-qwen3next-mtp"]):
    model = target(name)
    layers = type(model.config)(**model.config.to_dict())
    layers._attn_implementation = "eager"
    head = MTPDraftModel(MTPSpeculatorConfig(transformer_layer_config=layers, speculators_config=proposals("mtp", 1)))
    randomise(head, name in PLAIN, seed + 10)
    head.embed_tokens.weight = model.model.embed_tokens.weight
    head.lm_head.weight = model.lm_head.weight
    text = torch.randint(3, 96, (23,), generator=torch.Generator().manual_seed(seed)).tolist()
    first, drafts, logs = draft(head, model, text, 4)
    folder = f"fastmtp/{name}-head"
    save(head, folder, {"text": text, "first": [[round(v, 5) for v in row] for row in first.tolist()], "tokens": drafts, "log_probs": logs})
    print(name, drafts, logs, first.shape)
