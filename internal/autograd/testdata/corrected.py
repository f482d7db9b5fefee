# Losses of DSpark and DFlash 2 heads, and their gradients, by PyTorch, for corrected_test.go: of rows x that a block left, a norm and
# a head, and the correction by the token before, as vLLM's speculators 0.9 and DeepSpec have them.
#
#     python corrected.py > corrected.json
import json

import torch
import torch.nn.functional as F

torch.manual_seed(7)
ROWS, HIDDEN, VOCAB, RANK, TOP, EPS = 12, 8, 24, 5, 4, 1e-5
given = {
    "x": torch.randn(ROWS, HIDDEN), "norm": 1 + 0.2 * torch.randn(HIDDEN), "head": torch.randn(VOCAB, HIDDEN),
    "before": torch.randn(VOCAB, RANK), "token": 0.5 * torch.randn(VOCAB, RANK), "gate": 0.5 * torch.randn(RANK, HIDDEN + RANK),
    "gate_bias": torch.randn(RANK), "state": torch.randn(RANK, HIDDEN), "sure": 0.5 * torch.randn(1, HIDDEN + RANK),
    "sure_bias": torch.randn(1),
}
teacher = torch.randn(ROWS, VOCAB)
previous = torch.randint(0, VOCAB, (ROWS,))
text = torch.randint(0, VOCAB, (ROWS,))
weight = torch.rand(ROWS)
weight[3] = 0  # a row beyond the text


def norm(p):
    return p["x"] * torch.rsqrt((p["x"] ** 2).mean(-1, keepdim=True) + EPS) * p["norm"]


def dspark(p, gated):
    x, e, q = norm(p), p["before"][previous], teacher.softmax(-1)
    latent = e
    if gated:
        latent = torch.sigmoid(torch.cat([x, e], -1) @ p["gate"].T + p["gate_bias"]) * e
    logits = x @ p["head"].T + latent @ p["token"].T
    distance = (logits.softmax(-1) - q).abs().sum(-1) / 2
    sure = (torch.cat([x, e], -1) @ p["sure"].T + p["sure_bias"])[:, 0]
    share = (1 - distance).detach()
    rows = 0.1 * F.cross_entropy(logits, text, reduction="none") + 0.9 * distance
    rows = rows + F.binary_cross_entropy_with_logits(sure, share, reduction="none")
    return (weight * rows).sum()


def dflash2(p):
    x, e, q = norm(p), p["before"][previous], teacher.softmax(-1)
    logits = x @ p["head"].T
    best = logits.topk(TOP, dim=-1).indices
    has = best.eq(text[:, None])
    place = torch.where(has.any(-1), has.int().argmax(-1), TOP - 1)
    best[:, -1] = torch.where(has.any(-1), best[:, -1], text)
    context = e * (x @ p["state"].T)
    scores = logits.gather(-1, best) + (context[:, None] * p["token"][best]).sum(-1)
    rows = F.kl_div(logits.log_softmax(-1), q, reduction="none").sum(-1) + F.cross_entropy(scores, place, reduction="none")
    return (weight * rows).sum()


def case(f, *args):
    p = {k: v.clone().requires_grad_() for k, v in given.items()}
    loss = f(p, *args)
    loss.backward()
    return {"loss": loss.item(), "gradients": {k: v.grad.flatten().tolist() for k, v in p.items() if v.grad is not None}}


print(json.dumps({
    "rows": ROWS, "hidden": HIDDEN, "vocab": VOCAB, "rank": RANK, "top": TOP, "eps": EPS,
    "given": {k: v.flatten().tolist() for k, v in given.items()}, "teacher": teacher.flatten().tolist(),
    "previous": previous.tolist(), "text": text.tolist(), "weight": weight.tolist(),
    "cases": {"vanilla": case(dspark, False), "gated": case(dspark, True), "dflash2": case(dflash2)},
}))
