# What transformers computes for a random model of grove-lab synth, and the keys that llama.cpp's converter gives it, as
# golden_NAME.json. The converter's tensors must be those of grove's GGUF file, bit for bit but for rotations and ssm_a.
#
#   grove-lab synth NAME NAME.gguf --type f32 --seed 1; grove convert NAME.gguf NAME
#   LLAMA_CPP=llama.cpp python golden.py NAME 1 NAME NAME.gguf
#
# LLAMA_CPP is a checkout of llama.cpp. Packages: torch, transformers, gguf.
import copy, json, os, pathlib, random, shutil, sys, tempfile

sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py"]
import gguf, numpy, safetensors.torch, torch, transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.integrations.bitnet import replace_with_bitnet_linear
from conversion import get_model_class
from conversion.base import ModelBase, ModelType
import conversion.base

TOKENS = 110  # several pages of the cache, beyond windows of 70


def hunyuan(c):
    """The converter wants the base of the rotation as published files have it."""
    c["rope_scaling"] = {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0}
    c["rope_theta"], c["max_position_embeddings"] = 10000.0, 32768


def arcee(c):
    """The factor of YaRN's attention is the usual one, which the converter writes only where config.json has it."""
    (c.get("rope_scaling") or c["rope_parameters"]).pop("attention_factor", None)


def granite(folder, c):
    """Returns a folder of MiniCPM's, which transformers has no class for, as one of Granite's, which computes the same."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    dim = c["hidden_size"] // c["num_attention_heads"]
    c.update(model_type="granite", architectures=["GraniteForCausalLM"], embedding_multiplier=c["scale_emb"],
             residual_multiplier=c["scale_depth"] / c["num_hidden_layers"] ** 0.5, attention_multiplier=dim ** -0.5,
             logits_scaling=c["hidden_size"] / c["dim_model_base"])
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


def ling(folder, c):
    """Returns a folder of Ling 1 or 2, which transformers has no class for, as one of GLM-4.5 or of DeepSeek's
    first, which computes the same."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    dim = c["head_dim"]
    names = {"word_embeddings": "embed_tokens", "attention.dense": "self_attn.o_proj", "attention.query_layernorm": "self_attn.q_norm",
             "attention.key_layernorm": "self_attn.k_norm", "expert_bias": "e_score_correction_bias"}
    tensors = {}
    for file in pathlib.Path(folder).glob("*.safetensors"):
        for name, t in safetensors.torch.load_file(file).items():
            if name.endswith("query_key_value.weight"):
                sizes = [c["num_attention_heads"] * dim] + [c["num_key_value_heads"] * dim] * 2
                for part, x in zip("qkv", t.split(sizes)):
                    tensors[name.replace("attention.query_key_value", f"self_attn.{part}_proj")] = x.contiguous()
                continue
            for a, b in names.items():
                name = name.replace(a, b)
            tensors[name] = t
    for file in (work / "hf").glob("*.safetensors*"):
        file.unlink()
    safetensors.torch.save_file(tensors, work / "hf/model.safetensors", {"format": "pt"})
    c.update(model_type="glm4_moe", architectures=["Glm4MoeForCausalLM"], n_routed_experts=c["num_experts"],
             n_shared_experts=c["num_shared_experts"])
    if "score_function" not in c:
        return deepseek(work / "hf", c)
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


RENAMED = {
    "exaone": {"transformer.wte": "model.embed_tokens", "transformer.ln_f": "model.norm", "transformer.h": "model.layers",
               "attn.attention.out_proj": "self_attn.o_proj", "attn.attention": "self_attn", "ln_1": "input_layernorm",
               "ln_2": "post_attention_layernorm", "c_fc_0": "gate_proj", "c_fc_1": "up_proj", "c_proj": "down_proj"},
    "internlm2": {"tok_embeddings": "embed_tokens", "output.": "lm_head.", "attention_norm": "input_layernorm",
                  "ffn_norm": "post_attention_layernorm", "attention.wo": "self_attn.o_proj",
                  "feed_forward.w1": "mlp.gate_proj", "feed_forward.w3": "mlp.up_proj", "feed_forward.w2": "mlp.down_proj"},
}


def renamed(folder, c):
    """Returns a folder of EXAONE 3 or InternLM 2, which transformers has no class for, as one of Llama, which computes the same."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
    for file in (work / "hf").glob("*.safetensors"):
        tensors = {}
        for name, t in safetensors.torch.load_file(file).items():
            for a, b in RENAMED[c["model_type"]].items():
                name = name.replace(a, b)
            if "wqkv" in name:  # by group: its queries, its key, its value
                grouped = t.unflatten(0, (groups, heads // groups + 2, -1))
                for part, x in zip("qkv", grouped.split([heads // groups, 1, 1], 1)):
                    tensors[name.replace("attention.wqkv", f"self_attn.{part}_proj")] = x.flatten(0, 2).contiguous()
                continue
            tensors[name] = t
        safetensors.torch.save_file(tensors, file, {"format": "pt"})
    c.update(model_type="llama", architectures=["LlamaForCausalLM"], rms_norm_eps=c.get("layer_norm_epsilon") or c["rms_norm_eps"])
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


def deepseek(folder, c):
    """Returns a folder of DeepSeek's first model with experts, which transformers has no class for, as one of Qwen 2's, whose
    shared experts have gates: with gates of 1/2 and their last product doubled, it computes the same."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    for file in (work / "hf").glob("*.safetensors"):
        tensors = {}
        for name, t in safetensors.torch.load_file(file).items():
            if name.endswith("shared_experts.down_proj.weight"):
                t = t * 2
                tensors[name.split("shared_experts")[0] + "shared_expert_gate.weight"] = torch.zeros(1, c["hidden_size"])
            tensors[name.replace("shared_experts", "shared_expert")] = t
        safetensors.torch.save_file(tensors, file, {"format": "pt"})
    c.update(model_type="qwen2_moe", architectures=["Qwen2MoeForCausalLM"], num_experts=c["n_routed_experts"], qkv_bias=False,
             shared_expert_intermediate_size=c["n_shared_experts"] * c["moe_intermediate_size"],
             mlp_only_layers=list(range(c["first_k_dense_replace"])))
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


def falcon(folder, c):
    """Returns a folder of Falcon-H1's with multipliers, by which its tensors are divided: powers of two, so that it computes the same."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    c.update(embedding_multiplier=4.0, lm_head_multiplier=0.5, attention_in_multiplier=2.0, attention_out_multiplier=0.25,
             key_multiplier=0.5, ssm_in_multiplier=0.25, ssm_out_multiplier=8.0, ssm_multipliers=[0.5, 2.0, 4.0, 0.125, 16.0],
             mlp_multipliers=[2.0, 0.5])
    inner, keys = c["mamba_d_ssm"], c["mamba_n_groups"] * c["mamba_d_state"]
    sizes = torch.tensor([inner, inner, keys, keys, c["mamba_n_heads"]])
    by = {"embed_tokens": 4.0, "lm_head": 0.5, "q_proj": 2.0, "k_proj": 1.0, "v_proj": 2.0, "o_proj": 0.25, "gate_proj": 2.0,
          "down_proj": 0.5, "mamba.out_proj": 8.0,
          "mamba.in_proj": 0.25 * torch.tensor(c["ssm_multipliers"]).repeat_interleave(sizes)[:, None]}
    for file in (work / "hf").glob("*.safetensors"):
        tensors = safetensors.torch.load_file(file)
        for name, t in tensors.items():
            for part, factor in by.items():
                if name.endswith(part + ".weight"):
                    tensors[name] = t / factor
        safetensors.torch.save_file(tensors, file, {"format": "pt"})
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


class Normed(torch.nn.Module):
    """A layer with a norm of its output."""

    def __init__(self, layer, norm):
        super().__init__()
        self.layer, self.norm = layer, norm

    def forward(self, x, **named):
        return self.norm(self.layer(x, **named))


def llama(folder, c):
    """Returns a folder of Nanbeige 4.2 or openPangu, which transformers has no class for, as one of Llama, whose layers loop repeats."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    c.update(attention_bias=c["model_type"] == "PanguEmbedded", model_type="llama", architectures=["LlamaForCausalLM"])
    json.dump(c, open(work / "hf/config.json", "w"))
    return work / "hf"


def loop(model, times):
    """Has the rows of a Llama pass its layers several times, and the last norm after each time."""
    layers = list(model.model.layers)
    once = layers[:-1] + [Normed(layers[-1], model.model.norm)]
    model.model.layers = torch.nn.ModuleList(once * (times - 1) + layers)
    model.config.num_hidden_layers *= times


class Replaced(torch.nn.Linear):
    """A product in the place of attention."""

    def forward(self, hidden_states, **named):
        return super().forward(hidden_states), None


class Nothing(torch.nn.Module):
    """Half a layer that adds nothing."""

    def forward(self, hidden_states, **named):
        return (torch.zeros_like(hidden_states), None) if named else torch.zeros_like(hidden_states)


def deci(folder, c):
    """Returns the model of a folder of Nemotron's DeciLM, which transformers has no class for: a Llama whose layers differ."""
    common = {k: v for k, v in c.items() if k not in ("model_type", "block_configs", "architectures", "num_key_value_heads", "intermediate_size")}
    config = lambda heads, width: transformers.LlamaConfig(**common, num_key_value_heads=heads, intermediate_size=width, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config(1, 1))
    for i, block in enumerate(c["block_configs"]):
        attention, ffn = block["attention"], block["ffn"]
        width = (int(2 * (ffn["ffn_mult"] or 0) * c["hidden_size"] / 3) + 255) // 256 * 256
        layer = LlamaDecoderLayer(config(c["num_attention_heads"] // (attention["n_heads_in_group"] or 1), width or 1), i)
        if attention["replace_with_linear"]:
            layer.self_attn = torch.nn.ModuleDict({"linear_attn": Replaced(c["hidden_size"], c["hidden_size"], bias=False)})
            layer.self_attn.forward = layer.self_attn["linear_attn"].forward
        if attention["no_op"]:
            layer.self_attn, layer.input_layernorm = Nothing(), torch.nn.Identity()
        if ffn["no_op"]:
            layer.mlp, layer.post_attention_layernorm = Nothing(), torch.nn.Identity()
        model.model.layers[i] = layer
    tensors = safetensors.torch.load_file(folder + "/model.safetensors")
    model.load_state_dict(tensors, strict=True)
    return model.float().eval()


def step(folder, c):
    """Returns the model of a folder of Step 3.5, which transformers knows as the text model of Step 3.7."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    vision = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
    whole = {"model_type": "step3p7", "architectures": ["Step3p7ForConditionalGeneration"], "text_config": c, "vision_config": vision}
    json.dump(whole, open(work / "hf/config.json", "w"))
    kind = transformers.Step3p7ForConditionalGeneration
    return kind.from_pretrained(work / "hf", dtype=torch.float32, attn_implementation="eager").eval()


def bitnet(folder, config):
    """Returns the model of a folder of BitNet's, with its products, without the package that transformers wants for loading it."""
    torch.compiler.set_stance("force_eager")
    q = config.quantization_config
    del config.quantization_config
    config._attn_implementation = "eager"
    model = transformers.BitNetForCausalLM(config)
    names = q.pop("modules_to_not_convert")
    replace_with_bitnet_linear(model, names, transformers.BitNetQuantConfig(**q))
    tensors = safetensors.torch.load_file(folder + "/model.safetensors")
    left = model.load_state_dict(tensors, strict=False, assign=True)
    if left.unexpected_keys or set(left.missing_keys) - {"lm_head.weight"}:
        sys.exit(f"other tensors: {left}")
    model.tie_weights()
    return model.eval()


def steady(model, rng, vocabulary):
    """Returns a short text for which BitNet computes the same in float64. In most longer ones, the last bits of a number decide
    somewhere whether it is rounded up or down, and logits differ by a hundredth of the largest."""
    wide = copy.deepcopy(model).double()
    while True:
        ids = [rng.randrange(3, vocabulary) for _ in range(8)]
        with torch.no_grad():
            a, b = (m(torch.tensor([ids]), use_cache=False).logits[0] for m in (model, wide))
        if (a - b).abs().max() < 1e-5 * a.abs().max():
            return ids


FIXES = {"arcee": arcee, "cohere2": lambda c: c.update(rotary_pct=1.0), "hunyuan-dense": hunyuan,
         "mimo2": lambda c: c.pop("rope_parameters"),
         "phimoe": lambda c: c.update(rope_parameters={"rope_theta": c["rope_theta"], "original_max_position_embeddings": 1024}),
         "chatglm": lambda c: c.update(layernorm_epsilon=c["rms_norm_eps"], seq_length=c["max_position_embeddings"])}


def convert(folder, architecture, fix):
    """Returns the GGUF file that llama.cpp's converter makes of a folder, without a vocabulary."""
    work = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "hf")
    config = json.load(open(work / "hf/config.json"))
    fix(config)
    json.dump(config, open(work / "hf/config.json", "w"))
    ModelBase.load_hparams = staticmethod(lambda d, is_mistral_format=False: json.load(open(pathlib.Path(d) / "config.json")))
    if architecture == "Mistral4ForCausalLM":  # published as the text model of another class
        kind = get_model_class("Mistral3ForConditionalGeneration").Mistral4Model
    else:
        kind = get_model_class(architecture)
    kind.set_vocab = lambda self: None
    kind._n_nextn = 0  # MiMo-V2's converter writes that there are three
    kind.no_mtp = True
    kind(work / "hf", gguf.LlamaFileType.ALL_F32, work / "m.gguf").write()
    return gguf.GGUFReader(str(work / "m.gguf"))


def keys(reader, arch):
    """Returns the keys of an architecture, each with its type."""
    names = {gguf.GGUFValueType.UINT32: "u32", gguf.GGUFValueType.FLOAT32: "f32", gguf.GGUFValueType.BOOL: "bool",
             gguf.GGUFValueType.INT32: "i32", gguf.GGUFValueType.STRING: "string"}
    finite = lambda x: list(map(finite, x)) if isinstance(x, list) else None if x == -float("inf") else x  # JSON lacks it
    return {f.name: [names[f.types[-1]], finite(f.contents())] for f in reader.fields.values()
            if f.name.startswith((arch + ".", "xielu."))}


def same(made, own):
    """Fails where the tensors of two files differ."""
    a, b = ({t.name: t for t in r.tensors} for r in (made, own))
    for name in [n for n in a if "ffn_gate_up_exps" in n]:  # grove's files have the halves apart
        t = a.pop(name)
        for part, data in zip(("gate", "up"), numpy.split(t.data, 2, axis=1)):
            half = name.replace("gate_up", part)
            a[half] = t._replace(name=half, shape=b[half].shape, data=data)
    if a.keys() != b.keys():
        sys.exit(f"tensors of one file alone: {sorted(a.keys() ^ b.keys())}")
    for name, t in a.items():
        if name.endswith("exp_probs_b.bias"):  # the converter leaves Ernie's one row
            t = t._replace(shape=b[name].shape, data=t.data.reshape(-1))
        if name.endswith("weight") and "ssm_conv1d_" in name:  # the converter's have a fourth dimension of 1
            t = t._replace(shape=b[name].shape, data=t.data.reshape(b[name].data.shape))
        if list(t.shape) != list(b[name].shape) or not numpy.array_equal(t.data, b[name].data):
            d = numpy.abs(t.data - b[name].data).max() if list(t.shape) == list(b[name].shape) else "shape"
            if name != "rope_freqs.weight" and not name.endswith("ssm_a") or d == "shape" or (d / numpy.abs(t.data).max()) > 1e-6:
                sys.exit(f"{name} differs: {d}")


def main(name, seed, folder, file):
    fields, source = json.load(open(folder + "/config.json")), folder
    architecture = fields["architectures"][0]
    if fields["model_type"] == "minicpm":
        folder = granite(folder, fields)
    if fields["model_type"] == "bailing_moe":
        folder = ling(folder, fields)
    if fields["model_type"] == "deepseek":
        folder = deepseek(folder, fields)
    if fields["model_type"] in RENAMED:
        folder = renamed(folder, fields)
    if fields["model_type"] in ("nanbeige", "PanguEmbedded"):
        folder = llama(folder, fields)
    if fields["model_type"] == "falcon_h1":
        folder = source = falcon(folder, fields)
    built = deci(folder, fields) if fields["model_type"] == "nemotron-nas" else None
    config = built.config if built else AutoConfig.from_pretrained(folder)
    config.pad_token_id = None if fields["model_type"] != "step3p5" else 1  # defaults may lie beyond the vocabulary
    auto = AutoModelForCausalLM if fields["model_type"] != "mistral4" else transformers.Mistral4ForCausalLM
    if fields["model_type"] == "bitnet":
        model = bitnet(folder, config)
    elif fields["model_type"] == "step3p5":
        model = step(folder, fields)
    elif built:
        model = built
    else:
        model = auto.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager").eval()
    if "num_loops" in fields:
        loop(model, fields["num_loops"])
    rng = random.Random(name)
    ids = [rng.randrange(3, config.vocab_size) for _ in range(TOKENS)]
    if fields["model_type"] == "bitnet":
        ids = steady(model, rng, config.vocab_size)
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    chosen = torch.log_softmax(logits.double(), -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    steps, cache = [], None  # models with recurrent layers compute a text as a whole in another way than its tokens
    if "linear_attention" in getattr(config, "layer_types", []):
        with torch.no_grad():
            for token in ids[:-1]:
                out = model(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                steps.append(torch.log_softmax(out.logits[0, -1].double(), -1)[ids[len(steps) + 1]])
    differ = (torch.stack(steps) - chosen).abs().max().item() if steps else 0.0
    own = gguf.GGUFReader(file)
    arch = own.fields["general.architecture"].contents()
    found = keys(own, arch)
    if fields["model_type"] != "bitnet":  # the converter would round the weights again
        made = convert(source, architecture, FIXES.get(arch, lambda c: None))
        same(made, own)
        found = keys(made, arch)
    # what the converter drops: the numbers by which queries of Mistral 4 and Llama 4 grow, windows
    dropped = {"mistral4": [".attention.temperature_"], "starcoder2": [".attention.sliding_window"],
               "llama4": [".attention.temperature_", ".attention.sliding_window"]}
    found.update({n: v for n, v in keys(own, arch).items() if any(x in n for x in dropped.get(arch, []))})
    json.dump({
        "shape": name, "seed": int(seed), "context": config.max_position_embeddings, "prompt_ids": ids,
        "reference_logits": [round(x, 5) for x in logits[-1].tolist()], "log_probs": [round(x, 6) for x in chosen.tolist()],
        "keys": found, "ways_differ": round(differ, 6),
        "made_with": f"transformers {transformers.__version__} in float32, eager attention; keys by llama.cpp's converter; testdata/golden.py",
    }, open(f"golden_{name}.json", "w"))
    print(name, "largest logit", logits.abs().max().item(), "entropy", -(logits[-1].softmax(-1) * logits[-1].log_softmax(-1)).sum().item())


main(*sys.argv[1:])
