"""Writes golden/: a small Falcon head as its authors' code saves one, and what PyTorch computes with it, for TestAsPyTorch.

Run it in this folder with PyTorch 1.13 or later.
"""

import json
import os
import sys

import torch
from torch import nn

sys.path.insert(0, "../../../testing/testdata")
from llama import MLP, Attention, Norm  # noqa: E402

HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, EPS, BASE, K = 16, 2, 1, 24, 20, 1e-5, 10000.0, 2
TOKENS = [3, 1, 4, 1, 5, 9, 2]  # of the rows of text
DRAFT = [6, 5]  # of a block below them


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention(HIDDEN, HIDDEN, HEADS, KV_HEADS, BASE, True)
        self.mlp, self.post_attention_layernorm = MLP(HIDDEN, FFN), Norm(HIDDEN, EPS)

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
