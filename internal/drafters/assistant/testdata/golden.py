"""Writes heads/: a tiny random Gemma 4 target, assistants for it with logits of all tokens and with
ordered embeddings, and what transformers 5.24 computes with them.

    python3 golden.py

"short" is what transformers' own candidate generator drafts, a chain, after a text shorter than the
window. "long" is a tree after a text longer than the window: there the generator's mask lets two keys
more in than the target's own layers see, so the keys before these are cut off here.
"""
import json
import pathlib

import torch
from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig
from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

VOCAB, WINDOW, LONG = 64, 8, 21
HERE = pathlib.Path(__file__).parent / "heads"


def fill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for _, p in model.named_parameters():
        mean, std = (0, 0.25) if p.dim() > 1 else (1, 0.1)
        p.data = mean + std * torch.randn(p.shape, generator=generator)
    for name, b in model.named_buffers():
        if name.endswith("layer_scalar"):
            b.data = 0.5 + 0.5 * torch.rand(b.shape, generator=generator)
        if name.endswith("token_ordering"):
            b.data = torch.randperm(VOCAB, generator=generator)
    return model.eval()


def text(layers, **more):
    fields = dict(
        vocab_size=VOCAB, num_hidden_layers=len(layers), layer_types=layers, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, global_head_dim=32, sliding_window=WINDOW, max_position_embeddings=128, hidden_size_per_layer_input=0,
        vocab_size_per_layer_input=0, enable_moe_block=False, use_double_wide_mlp=False, attention_k_eq_v=False,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25}},
        attn_implementation="eager", tie_word_embeddings=True)
    return Gemma4TextConfig(**(fields | more))


s, f = "sliding_attention", "full_attention"
target = fill(Gemma4ForCausalLM(text([s, f, s, f], hidden_size=48, intermediate_size=64, num_kv_shared_layers=1,
                                     final_logit_softcapping=30.0)), 1)
# The last layer reads the keys and values of the second, so layers 2 and 3 are the last of their kinds.
target.save_pretrained(HERE / "target")


def run(tokens):
    out = target(torch.tensor([tokens]), output_hidden_states=True, return_shared_kv_states=True, use_cache=True)
    return out, out.hidden_states[-1], out.shared_kv_states


for ordered in [False, True]:
    config = Gemma4AssistantConfig(
        text_config=text([s, s, f], hidden_size=32, intermediate_size=64, num_kv_shared_layers=3), backbone_hidden_size=48,
        use_ordered_embeddings=ordered, num_centroids=16, centroid_intermediate_top_k=4)
    config.text_config._attn_implementation = "eager"
    head = fill(Gemma4AssistantForCausalLM(config), 2)
    dir = HERE / ("ordered" if ordered else "dense")
    head.save_pretrained(dir)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, VOCAB, (LONG,), generator=generator).tolist()
    with torch.no_grad():
        head.generation_config.num_assistant_tokens = 4
        g = target.generation_config
        g.max_length = 100
        drafts = SinglePositionMultiTokenCandidateGenerator(head, target.get_input_embeddings(), g)
        short = tokens[: WINDOW - 1]
        out, _, _ = run(short[:-1])
        ids, logits = drafts.get_candidates(torch.tensor([short]), {}, out, False, 0)
        golden = {"text": tokens, "short": {"text": len(short) - 1, "tokens": ids[0, len(short):].tolist(),
                                            "logits": logits[0].tolist()}}

        committed = tokens[:-1]
        _, hidden, kv = run(committed)
        kv = {k: tuple(x[:, :, -(WINDOW - 1):] if k == s else x for x in v) for k, v in kv.items()}
        rows, states = [], {-1: hidden[:, -1:]}
        # The root, two tokens below it, and one below each of these.
        parents, path = [-1, 0, 0, 1, 2], [tokens[-1], 5, 9, 33, 5]
        for i, (parent, token) in enumerate(zip(parents, path)):
            x = torch.cat([target.get_input_embeddings()(torch.tensor([[token]])), states[parent]], dim=-1)
            o = head(inputs_embeds=x, position_ids=torch.tensor([[len(committed)]]), shared_kv_states=kv, use_cache=False)
            states[i] = o.last_hidden_state
            rows.append(o.logits[0, 0].tolist())
        golden["long"] = {"text": len(committed), "tokens": path, "parents": parents, "logits": rows}
    (dir / "golden.json").write_text(json.dumps(golden))
