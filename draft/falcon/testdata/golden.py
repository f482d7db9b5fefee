"""Writes golden/: a small Falcon head as its authors' code saves one, and what PyTorch computes with it, for TestAsPyTorch.

Run it in this folder with PyTorch 1.13 or later.
"""

import json
import os

import torch
from torch import nn

HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, EPS, BASE, K = 16, 2, 1, 24, 20, 1e-5, 10000.0, 2
TOKENS = [3, 1, 4, 1, 5, 9, 2]  # of the rows of text
DRAFT = [6, 5]  # of a block below them


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        dim = HIDDEN // HEADS
        self.q_proj = nn.Linear(HIDDEN, HEADS * dim)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * dim)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * dim)
        self.o_proj = nn.Linear(HEADS * dim, HIDDEN, bias=False)

    def forward(self, x, mask):
        n, dim = x.shape[0], HIDDEN // HEADS
        angle = torch.outer(torch.arange(n), BASE ** (-torch.arange(0, dim, 2) / dim)).repeat(1, 2)

        def turned(v):
            v = v.view(n, -1, dim).transpose(0, 1)
            half = torch.cat((-v[..., dim // 2 :], v[..., : dim // 2]), dim=-1)
            return v * angle.cos() + half * angle.sin()

        q, k = turned(self.q_proj(x)), turned(self.k_proj(x)).repeat(HEADS // KV_HEADS, 1, 1)
        v = self.v_proj(x).view(n, KV_HEADS, dim).transpose(0, 1).repeat(HEADS // KV_HEADS, 1, 1)
        scores = (q @ k.transpose(1, 2) / dim**0.5).masked_fill(~mask, float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(n, HIDDEN))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, FFN, bias=False)
        self.up_proj = nn.Linear(HIDDEN, FFN, bias=False)
        self.down_proj = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.3 * torch.randn(HIDDEN))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp, self.post_attention_layernorm = Attention(), MLP(), Norm()

    def forward(self, x, mask):
        x = x + self.self_attn(x, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, HIDDEN)
        self.lstm = nn.LSTM(2 * HIDDEN, HIDDEN, num_layers=2)
        self.layers = nn.ModuleList([Layer()])

    def forward(self, tokens, features, mask, recurrent):
        x = torch.cat((self.embed_tokens(torch.tensor(tokens)), features), dim=-1)
        # Rows are the batch of one step, each from zeros, as the release calls it; or the steps of one sequence.
        x = self.lstm(x[:, None])[0][:, 0] if recurrent else self.lstm(x[None])[0][0]
        return self.layers[0](x, mask)


def blocks(sizes):
    mask, end = torch.zeros(sum(sizes), sum(sizes), dtype=torch.bool), 0
    for size in sizes:
        mask[end : end + size, : end + size] = True
        end += size
    return mask


torch.manual_seed(7)
torch.set_grad_enabled(False)
head = Head()
features = torch.randn(len(TOKENS), HIDDEN)
golden = {"tokens": TOKENS, "draft": DRAFT, "features": features.flatten().tolist()}
for name, recurrent in (("zero", False), ("recurrent", True)):
    text = head(TOKENS, features, blocks([2, 2, 1, 2]), recurrent)
    both = head(TOKENS + DRAFT, torch.cat((features, text[-K:])), blocks([2, 2, 1, 2, 2]), recurrent)
    golden[name] = (both @ head.embed_tokens.weight.T).flatten().tolist()
os.makedirs("golden", exist_ok=True)
torch.save(head.state_dict(), "golden/pytorch_model.bin")
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": FFN,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "num_hidden_layers": 1, "rms_norm_eps": EPS, "rope_theta": BASE,
          "max_position_embeddings": 64, "vocab_size": VOCAB, "tie_word_embeddings": False, "qkv_bias": True, "k_mask": K}
with open("golden/config.json", "w") as f:
    json.dump(config, f)
with open("golden/logits.json", "w") as f:
    json.dump(golden, f)
