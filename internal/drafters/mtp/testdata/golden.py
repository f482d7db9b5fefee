"""Writes golden_NAME.json, a folder NAME and NAME.gguf: a tiny random model with a layer for multi-token prediction, and what that drafts.

    LLAMA_CPP=llama.cpp python golden.py [NAME...]

The layer's equations are here: z = fc[norm(E x_{p+1}); norm(h_p)], a decoder layer of the model's kind at position p+1,
and a norm, whose output is the head's input and the next draft's h. h_p is the model's state after its last norm.
LLAMA_CPP is a checkout of llama.cpp, whose converter makes the GGUF files. It drops DeepSeek-V3's layer, and keeps that
of GLM-4.7-Flash, which is the same model otherwise: so it is told that DeepSeek's is GLM's. It drops Nemotron 3's, which
is two layers, of attention and of experts, and has a folder alone. K-EXAONE's and MiMo-V2's layers have the model's window
and an MLP, and rotate positions. MiMo-V2's h is the state before the last norm, the model's and the layer's own.
"""
import json, os, pathlib, sys

sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py"]
import gguf, torch, transformers
from conversion import get_model_class
from conversion.base import ModelBase
from conversion.glm import Glm4MoeLiteModel
from safetensors.torch import load_file, save_file
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as v3
from transformers.models.exaone_moe import modeling_exaone_moe as exaone
from transformers.models.glm4_moe import modeling_glm4_moe as glm
from transformers.models.glm4_moe_lite import modeling_glm4_moe_lite as lite
from transformers.models.hy_v3 import modeling_hy_v3 as hy
from transformers.models.mimo_v2_flash import modeling_mimo_v2_flash as mimo
from transformers.models.nemotron_h import modeling_nemotron_h as nemotron
from transformers.models.qwen3_5 import modeling_qwen3_5 as q35
from transformers.models.qwen3_next import modeling_qwen3_next as next_

torch.set_grad_enabled(False)
torch.set_num_threads(1)
common = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
              max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False, linear_num_key_heads=1,
              linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
              layer_types=["linear_attention", "full_attention"], full_attention_interval=2)
rope = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
grouped = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, moe_intermediate_size=16,
               n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, routed_scaling_factor=1.8, norm_topk_prob=True,
               max_position_embeddings=512, tie_word_embeddings=False)
latent = dict(grouped, num_key_value_heads=4, q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=12,
              rope_interleave=True)
plain = dict(rope_type="default", rope_theta=10000.0)
yarn = dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0,
            mscale=1.0, mscale_all_dim=1.0)
sparse = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
              moe_intermediate_size=16, num_experts_per_tok=3, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False)


class Pair(torch.nn.Module):
    """Nemotron 3's: two of its model's layers."""

    def __init__(self, config, _):
        super().__init__()
        kinds = config.layers_block_type
        self.layers = torch.nn.ModuleList(nemotron.NemotronHBlock(config, kinds.index(k)) for k in ["full_attention", "moe"])

    def forward(self, x, position_embeddings, **kwargs):
        for layer in self.layers:
            x = layer(x, **kwargs)
        return x


MODELS = {
    "tiny-qwen35-mtp": (transformers.Qwen3_5ForCausalLM, q35.Qwen3_5DecoderLayer, q35.Qwen3_5RMSNorm, transformers.Qwen3_5TextConfig(
        **common, intermediate_size=48, rope_parameters=dict(rope, mrope_section=[2, 1, 1], mrope_interleaved=True), mtp_num_hidden_layers=1)),
    "tiny-qwen3next-mtp": (transformers.Qwen3NextForCausalLM, next_.Qwen3NextDecoderLayer, next_.Qwen3NextRMSNorm, transformers.Qwen3NextConfig(
        **common, intermediate_size=48, rope_parameters=rope, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=24, decoder_sparse_step=1, norm_topk_prob=True)),
    "tiny-glm4moe-mtp": (transformers.Glm4MoeForCausalLM, glm.Glm4MoeDecoderLayer, glm.Glm4MoeRMSNorm, transformers.Glm4MoeConfig(
        **grouped, num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-5, n_group=1, topk_group=1, first_k_dense_replace=1,
        use_qk_norm=True, attention_bias=True, rope_parameters=dict(plain, partial_rotary_factor=0.5))),
    "tiny-glm4lite-mtp": (transformers.Glm4MoeLiteForCausalLM, lite.Glm4MoeLiteDecoderLayer, lite.Glm4MoeLiteRMSNorm,
        transformers.Glm4MoeLiteConfig(**latent, rms_norm_eps=1e-5, n_group=1, topk_group=1, mlp_layer_types=["dense", "sparse"],
        rope_parameters=plain)),
    "tiny-deepseek3-mtp": (transformers.DeepseekV3ForCausalLM, v3.DeepseekV3DecoderLayer, v3.DeepseekV3RMSNorm,
        transformers.DeepseekV3Config(**latent, rms_norm_eps=1e-6, n_group=4, topk_group=2, first_k_dense_replace=1, rope_parameters=yarn)),
    "tiny-nemotron-mtp": (transformers.NemotronHForCausalLM, Pair, nemotron.NemotronHRMSNorm, transformers.NemotronHConfig(
        vocab_size=96, hidden_size=32, layer_types=["linear_attention", "full_attention", "moe"], num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, intermediate_size=48, mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=16, n_groups=2,
        conv_kernel=4, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=16, moe_shared_expert_intermediate_size=24,
        moe_latent_size=24, n_shared_experts=1, routed_scaling_factor=2.5, norm_topk_prob=True, max_position_embeddings=512,
        tie_word_embeddings=False, num_nextn_predict_layers=1)),
    "tiny-exaone-moe-mtp": (transformers.ExaoneMoeForCausalLM, exaone.ExaoneMoeDecoderLayer, exaone.ExaoneMoeRMSNorm,
        transformers.ExaoneMoeConfig(**sparse, num_experts=8, num_shared_experts=1, head_dim=16, first_k_dense_replace=1,
        routed_scaling_factor=2.5, sliding_window=24, sliding_window_pattern="LG", layer_types=["sliding_attention", "full_attention"],
        rope_parameters=plain)),
    "tiny-hy3-mtp": (transformers.HYV3ForCausalLM, hy.HYV3DecoderLayer, hy.HYV3RMSNorm, transformers.HYV3Config(
        **sparse, num_experts=8, num_shared_experts=1, head_dim=16, router_scaling_factor=2.8, rope_parameters=plain)),
    "tiny-mimo2-mtp": (transformers.MiMoV2FlashForCausalLM, mimo.MiMoV2FlashDecoderLayer, mimo.MiMoV2FlashRMSNorm,
        transformers.MiMoV2FlashConfig(**sparse, n_routed_experts=8, head_dim=24, v_head_dim=16, sliding_window=24,
        layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"], rope_parameters={
            "full_attention": dict(plain, partial_rotary_factor=0.334),
            "sliding_attention": dict(plain, rope_theta=500.0, partial_rotary_factor=0.334)})),
}
QWEN = {"tiny-qwen35-mtp", "tiny-qwen3next-mtp"}  # whose norms are 1 + w, and whose layer has names of its own
DENSE = {"tiny-exaone-moe-mtp", "tiny-mimo2-mtp"}  # whose layer has an MLP and a window
OWN = {"tiny-glm4lite-mtp"}  # whose layer has an embedding and an output matrix that are not the model's


# The names in folders of parts of the layer, by transformers' names.
NAMES = {
    "tiny-hy3-mtp": {"mlp.gate.": "mlp.router.gate.", "mlp.e_score_correction_bias": "mlp.expert_bias", "shared_experts": "shared_mlp"},
    "tiny-mimo2-mtp": {"self_attn.sinks": "self_attn.attention_sink_bias", "post_attention_layernorm": "pre_mlp_layernorm"},
}


def randomise(module, ones):
    for name, p in [*module.named_parameters(), *((n, b) for n, b in module.named_buffers() if n.endswith("correction_bias"))]:
        if name.endswith("A_log"):
            p.copy_(torch.empty_like(p).uniform_(0.2, 3.2).log())
        elif p.dim() == 1:
            p.copy_(torch.randn_like(p) * 0.2 + (
                1.0 if name.endswith("linear_attn.norm.weight") or ones and (name == "weight" or name.endswith("norm.weight")) else 0.0))
        else:
            p.copy_(torch.randn_like(p) * (1.0 if "embed" in name else 2.0 / p.shape[-1] ** 0.5))


def window_layer(kind, config):
    """Returns a layer with a window and an MLP, as if it were one of the model's."""
    kept = config.layer_types, config.mlp_layer_types
    config.layer_types, config.mlp_layer_types = ["sliding_attention"], ["dense"]
    layer = kind(config, 0)
    config.layer_types, config.mlp_layer_types = kept
    return layer


def draft(model, layer, norms, fc, text, count, embedding, head):
    """Returns the tokens that the layer drafts one after another behind a text, and their log-probabilities."""
    e, h, out = norms
    before = []
    hook = getattr(model.model, "norm", fc).register_forward_pre_hook(lambda _, x: before.append(x[0][0]))
    states = model.model(torch.tensor([text[:-1]])).last_hidden_state[0]
    hook.remove()
    unnormed = isinstance(model, transformers.MiMoV2FlashForCausalLM)
    if unnormed:
        states = before[0]
    entry = lambda token, state: fc(torch.cat([e(embedding[token]), h(state)], -1))
    inputs = [entry(token, states[p]) for p, token in enumerate(text[1:])]
    tokens, logs = [], []
    for _ in range(count):
        x = torch.stack(inputs)[None]
        n = x.shape[1]
        places = torch.arange(1, n + 1)[None]
        mask = torch.full((1, 1, n, n), float("-inf")).triu(1)
        if isinstance(layer, (exaone.ExaoneMoeDecoderLayer, mimo.MiMoV2FlashDecoderLayer)):
            mask += torch.full_like(mask, float("-inf")).tril(-model.config.sliding_window)
        turns = None
        if unnormed:
            turns = model.model.rotary_emb(x, places, "sliding_attention")
        elif hasattr(model.model, "rotary_emb"):
            turns = model.model.rotary_emb(x, places[None].expand(3, -1, -1) if "mrope_section" in model.config.rope_parameters else places)
        x = layer(x, position_embeddings=turns, attention_mask=mask, position_ids=places)
        state = (x[0] if isinstance(x, tuple) else x)[0, -1]
        normed = out(state)
        p = torch.log_softmax((head @ normed).double(), -1)
        tokens.append(int(p.argmax()))
        logs.append(round(float(p.max()), 6))
        inputs.append(entry(tokens[-1], state if unnormed else normed))
    return tokens, logs


def convert(name, config, kind):
    """Writes NAME.gguf of the folder NAME."""
    ModelBase.load_hparams = staticmethod(lambda d, is_mistral_format=False: json.load(open(pathlib.Path(d) / "config.json")))
    converter = get_model_class(config.architectures[0] if config.architectures else kind.__name__)
    if kind is transformers.DeepseekV3ForCausalLM:
        converter = Glm4MoeLiteModel
    converter.set_vocab = lambda self: None
    converter(pathlib.Path(name), gguf.LlamaFileType.ALL_F32, pathlib.Path(name + ".gguf")).write()


for seed, (name, (kind, layer_kind, norm_kind, config)) in enumerate(MODELS.items()):
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    torch.manual_seed(seed + 1)
    config._attn_implementation = "eager"
    model = kind(config).eval()
    eps = getattr(config, "rms_norm_eps", None) or config.layer_norm_epsilon
    layer = window_layer(layer_kind, config) if name in DENSE else layer_kind(config, 1)
    layer, norms = layer.eval(), [norm_kind(32, eps=eps) for _ in range(3)]
    fc = torch.nn.Linear(64, 32, bias=False)
    for m in [model, layer, fc, *norms]:
        randomise(m, name not in QWEN)
    ends = [model.get_input_embeddings().weight, model.lm_head.weight]
    if name in OWN:
        ends = [torch.randn(96, 32), torch.randn(96, 32) * 2 / 32**0.5]
    text = torch.randint(3, 96, (71,)).tolist()
    tokens, logs = draft(model, layer, norms, fc, text, 5, *ends)
    model.save_pretrained(name)
    weights = load_file(f"{name}/model.safetensors")
    start, own, parts = "mtp.", "mtp.layers.0.", ["pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm", "fc"]
    if name == "tiny-nemotron-mtp":
        start, own = "mtp.layers.", "mtp."
        parts = ["0.enorm", "0.hnorm", "1.final_layernorm", "0.eh_proj"]
    elif name == "tiny-exaone-moe-mtp":
        settings = json.load(open(f"{name}/config.json"))
        settings["num_nextn_predict_layers"] = 1
        json.dump(settings, open(f"{name}/config.json", "w"), indent=2)
    elif name == "tiny-mimo2-mtp":
        start = own = "model.mtp.layers.0."
        parts = ["enorm", "hnorm", "final_layernorm", "eh_proj"]
        settings = json.load(open(f"{name}/config.json"))
        settings.update(hybrid_layer_pattern=[0, 1], moe_layer_freq=[0, 1], swa_head_dim=24, swa_v_head_dim=16, swa_num_attention_heads=4,
                        swa_num_key_value_heads=4, topk_method="noaux_tc", scoring_func="sigmoid", layernorm_epsilon=1e-6,
                        partial_rotary_factor=0.334, rope_theta=10000.0, swa_rope_theta=500.0)
        del settings["rope_parameters"]
        json.dump(settings, open(f"{name}/config.json", "w"), indent=2)
    elif name == "tiny-hy3-mtp":
        start = own = "model.layers.2."
        parts = ["enorm", "hnorm", "final_layernorm", "eh_proj"]
        settings = json.load(open(f"{name}/config.json"))
        settings.update(num_nextn_predict_layers=1, route_norm=True, rope_theta=10000.0)
        json.dump(settings, open(f"{name}/config.json", "w"), indent=2)
    elif name not in QWEN:
        start = own = f"model.layers.{config.num_hidden_layers}."
        parts = ["enorm", "hnorm", "shared_head.norm", "eh_proj"]
        weights[start + "embed_tokens.weight"], weights[start + "shared_head.head.weight"] = (w.clone() for w in ends)
        settings = json.load(open(f"{name}/config.json"))
        settings.pop("num_mtp_layers", None)
        settings["num_nextn_predict_layers"] = settings["first_k_dense_replace"] = 1
        if "kv_lora_rank" in settings:
            settings.update(scoring_func="sigmoid", topk_method="noaux_tc")
        json.dump(settings, open(f"{name}/config.json", "w"), indent=2)
    for part, module in zip(parts, [*norms, fc]):
        weights[f"{start}{part}.weight"] = module.weight.data
    for part, w in layer.state_dict().items():
        for old, new in NAMES.get(name, {}).items():
            part = part.replace(old, new)
        if ".experts." in part:
            before, matrix = part.rsplit(".", 1)
            names = ["gate_proj", "up_proj"] if matrix == "gate_up_proj" else [matrix]
            for i in range(len(w)):  # as published
                for each, rows in zip(names, w[i].chunk(len(names))):
                    weights[f"{own}{before}.{i}.{each}.weight"] = rows.clone()
        else:
            weights[own + part] = w
    if name == "tiny-mimo2-mtp":  # as published: three layers, of which the first drafts
        for part, w in [(part, w) for part, w in weights.items() if part.startswith(own)]:
            for i in "12":
                weights[part.replace("layers.0.", f"layers.{i}.")] = torch.randn_like(w) * 0.2
    save_file(weights, f"{name}/model.safetensors", {"format": "pt"})
    os.remove(f"{name}/generation_config.json")
    if name != "tiny-nemotron-mtp":
        convert(name, config, kind)
    json.dump({"text": text, "tokens": tokens, "log_probs": logs,
               "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, float32; testdata/golden.py"},
              open(f"golden_{name}.json", "w"))
    print(name, tokens, logs)
