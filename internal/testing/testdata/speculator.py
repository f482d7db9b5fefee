"""Small random heads of vLLM's speculators package (0.9.0), and how they are written, for scripts that write goldens.

The package wants no verifier here: its parts are called one by one, as its forward does. It imports what only its trainer
needs, which stands in here.
"""

import json
import os
import sys
from unittest import mock

os.environ["TORCHDYNAMO_DISABLE"] = "1"
for name in ("datasets", "hs_connectors"):
    sys.modules.setdefault(name, mock.MagicMock(__spec__=None, __path__=[]))

import torch  # noqa: E402
from speculators import SpeculatorsConfig, VerifierConfig  # noqa: E402
from speculators.proposals import GreedyTokenProposalConfig  # noqa: E402


def proposals(kind, tokens):
    return SpeculatorsConfig(algorithm=kind, proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=tokens)],
                             default_proposal_method="greedy", verifier=VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"]))


def randomise(model, seed):
    """Draws all weights: matrices from N(0, 0.3), vectors from 1 + N(0, 0.1)."""
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        noise = torch.randn(p.shape, generator=generator)
        p.data = noise * 0.3 if p.dim() > 1 else 1 + noise * 0.1
        p.requires_grad_(False)


def draft_vocabulary(model, tokens, vocab):
    model.load_vocab_mappings(torch.tensor([t in tokens for t in range(vocab)]), torch.tensor([t - i for i, t in enumerate(tokens)]))


def save(model, folder, golden):
    """Writes the head as the package does, and golden as golden.json beside it."""
    os.makedirs(folder, exist_ok=True)
    model.save_pretrained(folder)
    for name in os.listdir(folder):
        if name not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, name))
    with open(os.path.join(folder, "logits.json"), "w") as f:
        json.dump(golden, f)
