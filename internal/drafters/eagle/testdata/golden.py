"""Writes golden/: a small EAGLE-3 head as its authors' code saves one, and what PyTorch computes with it, for TestAsPyTorch.

Run it in this folder with PyTorch 1.13 or later.
"""

import json
import os
import sys

import torch
from torch import nn

sys.path.insert(0, "../../../testing/testdata")
from llama import MLP, Attention, Norm  # noqa: E402

HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, EPS, BASE = 16, 2, 1, 24, 20, 1e-5, 10000.0
DRAFT_VOCAB = [0, 1, 2, 3, 5, 7, 8, 11, 13, 14, 17, 19]
TOKENS = [3, 1, 4, 1, 5, 9, 2]  # of the entries of the text
DRAFT = [6, 5, 3]  # drafted below the last of them, each from the state of the row before


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Attention(2 * HIDDEN, HIDDEN, HEADS, KV_HEADS, BASE, False), MLP(HIDDEN, FFN)
        self.hidden_norm, self.input_layernorm, self.post_attention_layernorm = (Norm(HIDDEN, EPS) for _ in range(3))

    def forward(self, embed, feature):
        causal = torch.ones(len(embed), len(embed), dtype=torch.bool).tril()
        x = feature + self.self_attn(torch.cat((self.input_layernorm(embed), self.hidden_norm(feature)), dim=-1), causal)
        return x + self.mlp(self.post_attention_layernorm(x))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3 * HIDDEN, HIDDEN, bias=False)
        self.midlayer, self.norm = Layer(), Norm(HIDDEN, EPS)
        self.lm_head = nn.Linear(HIDDEN, len(DRAFT_VOCAB), bias=False)


torch.manual_seed(3)
torch.set_grad_enabled(False)
head, embed = Head(), nn.Embedding(VOCAB, HIDDEN)  # the embedding is the target's
taps = torch.randn(len(TOKENS), 3 * HIDDEN)
tokens, features = list(TOKENS), head.fc(taps)
states = head.midlayer(embed(torch.tensor(tokens)), features)
for token in DRAFT:
    tokens, features = tokens + [token], torch.cat((features, states[-1:]))
    states = head.midlayer(embed(torch.tensor(tokens)), features)
weights = head.state_dict()
weights["d2t"] = torch.tensor([token - i for i, token in enumerate(DRAFT_VOCAB)])
weights["t2d"] = torch.tensor([token in DRAFT_VOCAB for token in range(VOCAB)])
os.makedirs("golden", exist_ok=True)
torch.save(weights, "golden/pytorch_model.bin")
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": FFN,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "num_hidden_layers": 1, "rms_norm_eps": EPS,
          "max_position_embeddings": 64, "vocab_size": VOCAB, "draft_vocab_size": len(DRAFT_VOCAB), "tie_word_embeddings": False}
with open("golden/config.json", "w") as f:
    json.dump(config, f)
with open("golden/logits.json", "w") as f:
    json.dump({"tokens": TOKENS, "draft": DRAFT, "vocabulary": DRAFT_VOCAB, "embed": embed.weight.flatten().tolist(),
               "taps": taps.flatten().tolist(), "logits": head.lm_head(head.norm(states)).flatten().tolist()}, f)
