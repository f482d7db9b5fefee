"""Writes golden_NAME.json, a folder NAME and NAME.gguf: a tiny random model with a layer for multi-token prediction, and what that drafts.

    LLAMA_CPP=llama.cpp python golden.py

transformers runs the model but not the layer, whose equations are here: z = fc[norm(E x_{p+1}); norm(h_p)], a decoder
layer with gated attention at position p+1, and a norm, whose output is the head's input and the next draft's h.
LLAMA_CPP is a checkout of llama.cpp, whose converter makes the GGUF files.
"""
import json, os, pathlib, sys

sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py"]
import gguf, torch, transformers
from conversion import get_model_class
from conversion.base import ModelBase
from safetensors.torch import load_file, save_file
from transformers.models.qwen3_5 import modeling_qwen3_5 as q35
from transformers.models.qwen3_next import modeling_qwen3_next as next_

torch.set_grad_enabled(False)
torch.set_num_threads(1)
common = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
              max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False, linear_num_key_heads=1,
              linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
              layer_types=["linear_attention", "full_attention"], full_attention_interval=2)
rope = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
MODELS = {
    "tiny-qwen35-mtp": (transformers.Qwen3_5ForCausalLM, q35.Qwen3_5DecoderLayer, q35.Qwen3_5RMSNorm, transformers.Qwen3_5TextConfig(
        **common, intermediate_size=48, rope_parameters=dict(rope, mrope_section=[2, 1, 1], mrope_interleaved=True), mtp_num_hidden_layers=1)),
    "tiny-qwen3next-mtp": (transformers.Qwen3NextForCausalLM, next_.Qwen3NextDecoderLayer, next_.Qwen3NextRMSNorm, transformers.Qwen3NextConfig(
        **common, intermediate_size=48, rope_parameters=rope, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=24, decoder_sparse_step=1, norm_topk_prob=True)),
}


def randomise(module):
    for name, p in module.named_parameters():
        if name.endswith("A_log"):
            p.copy_(torch.empty_like(p).uniform_(0.2, 3.2).log())
        elif p.dim() == 1:
            p.copy_(torch.randn_like(p) * 0.2 + (1.0 if name.endswith("linear_attn.norm.weight") else 0.0))
        else:
            p.copy_(torch.randn_like(p) * (1.0 if "embed" in name else 2.0 / p.shape[-1] ** 0.5))


def draft(model, layer, norms, fc, text, count):
    """Returns the tokens that the layer drafts one after another behind a text, and their log-probabilities."""
    e, h, out = norms
    states = model.model(torch.tensor([text[:-1]])).last_hidden_state[0]
    entry = lambda token, state: fc(torch.cat([e(model.model.embed_tokens.weight[token]), h(state)], -1))
    inputs = [entry(token, states[p]) for p, token in enumerate(text[1:])]
    tokens, logs = [], []
    for _ in range(count):
        x = torch.stack(inputs)[None]
        n = x.shape[1]
        places = torch.arange(1, n + 1)[None]
        mask = torch.full((1, 1, n, n), float("-inf")).triu(1)
        turns = model.model.rotary_emb(x, places[None].expand(3, -1, -1) if "mrope_section" in model.config.rope_parameters else places)
        x = layer(x, position_embeddings=turns, attention_mask=mask, position_ids=places)
        state = out((x[0] if isinstance(x, tuple) else x)[0, -1])
        p = torch.log_softmax(model.lm_head(state).double(), -1)
        tokens.append(int(p.argmax()))
        logs.append(round(float(p.max()), 6))
        inputs.append(entry(tokens[-1], state))
    return tokens, logs


for seed, (name, (kind, layer_kind, norm_kind, config)) in enumerate(MODELS.items()):
    torch.manual_seed(seed + 1)
    config._attn_implementation = "eager"
    model = kind(config).eval()
    layer, norms = layer_kind(config, 1).eval(), [norm_kind(32, eps=1e-6) for _ in range(3)]
    fc = torch.nn.Linear(64, 32, bias=False)
    for m in [model, layer, fc, *norms]:
        randomise(m)
    text = torch.randint(3, 96, (71,)).tolist()
    tokens, logs = draft(model, layer, norms, fc, text, 5)
    model.save_pretrained(name)
    weights = load_file(f"{name}/model.safetensors")
    for i, (part, norm) in enumerate(zip(["pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"], norms)):
        weights[f"mtp.{part}.weight"] = norm.weight.data
    weights["mtp.fc.weight"] = fc.weight.data
    for part, w in layer.state_dict().items():
        if part.startswith("mlp.experts."):
            for i in range(config.num_experts):  # as published
                if part.endswith("down_proj"):
                    weights[f"mtp.layers.0.mlp.experts.{i}.down_proj.weight"] = w[i].clone()
                else:
                    for half, rows in zip(["gate_proj", "up_proj"], w[i].chunk(2)):
                        weights[f"mtp.layers.0.mlp.experts.{i}.{half}.weight"] = rows.clone()
        else:
            weights["mtp.layers.0." + part] = w
    save_file(weights, f"{name}/model.safetensors", {"format": "pt"})
    os.remove(f"{name}/generation_config.json")
    ModelBase.load_hparams = staticmethod(lambda d, is_mistral_format=False: json.load(open(pathlib.Path(d) / "config.json")))
    converter = get_model_class(config.architectures[0] if config.architectures else kind.__name__)
    converter.set_vocab = lambda self: None
    converter(pathlib.Path(name), gguf.LlamaFileType.ALL_F32, pathlib.Path(name + ".gguf")).write()
    json.dump({"text": text, "tokens": tokens, "log_probs": logs,
               "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, float32; testdata/golden.py"},
              open(f"golden_{name}.json", "w"))
    print(name, tokens, logs)
