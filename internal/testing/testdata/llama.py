"""Parts of a Llama layer in PyTorch, for the scripts that write golden values of heads."""

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1 + 0.3 * torch.randn(hidden))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Attention(nn.Module):
    """Attention of rows at positions 0, 1, … that are inputs wide; mask says which rows each sees."""

    def __init__(self, inputs, hidden, heads, kv_heads, base, bias):
        super().__init__()
        self.heads, self.kv_heads, self.dim, self.base = heads, kv_heads, hidden // heads, base
        self.q_proj = nn.Linear(inputs, heads * self.dim, bias=bias)
        self.k_proj = nn.Linear(inputs, kv_heads * self.dim, bias=bias)
        self.v_proj = nn.Linear(inputs, kv_heads * self.dim, bias=bias)
        self.o_proj = nn.Linear(heads * self.dim, hidden, bias=False)

    def forward(self, x, mask):
        n, dim, group = x.shape[0], self.dim, self.heads // self.kv_heads
        angle = torch.outer(torch.arange(n), self.base ** (-torch.arange(0, dim, 2) / dim)).repeat(1, 2)

        def turned(v):
            v = v.view(n, -1, dim).transpose(0, 1)
            half = torch.cat((-v[..., dim // 2 :], v[..., : dim // 2]), dim=-1)
            return v * angle.cos() + half * angle.sin()

        q, k = turned(self.q_proj(x)), turned(self.k_proj(x)).repeat(group, 1, 1)
        v = self.v_proj(x).view(n, self.kv_heads, dim).transpose(0, 1).repeat(group, 1, 1)
        scores = (q @ k.transpose(1, 2) / dim**0.5).masked_fill(~mask, float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(n, -1))


class MLP(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, ffn, bias=False)
        self.up_proj = nn.Linear(hidden, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
