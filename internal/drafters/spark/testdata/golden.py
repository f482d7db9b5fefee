"""Writes heads/: small DSpark and DFlash 2 heads as vLLM's speculators package (0.9.0) saves them, one of DSpark in DeepSpec's
layout, and Domino heads in SpecForge's; and the logits along a path that the package's layers compute, or for Domino the
published equations over torch's GRU. For TestAsReference.

Run it in this folder with that package, PyTorch and transformers 5.24.
"""

import json
import os
import sys

sys.path.insert(0, "../../../testing/testdata")
from speculator import draft_vocabulary, proposals, randomise, save  # noqa: E402

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig  # noqa: E402
from speculators.models.dflash2 import DFlash2DraftModel, DFlash2SpeculatorConfig  # noqa: E402
from speculators.models.dspark import DSparkDraftModel, DSparkSpeculatorConfig  # noqa: E402
from transformers import Qwen3Config  # noqa: E402

HIDDEN, VOCAB, BLOCK, MASK = 16, 20, 4, 19
DRAFT_VOCAB = [0, 1, 2, 3, 5, 7, 8, 11, 13, 14, 17, 18]
TEXT, PATH = 7, [3, 5, 17, 2]  # tokens of the text; the newest token behind it, and drafts
ALL = list(range(VOCAB))


def build(model, config, kind, seed, tokens=ALL, **flags):
    layers = Qwen3Config(hidden_size=HIDDEN, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                         num_hidden_layers=2, rms_norm_eps=1e-5, max_position_embeddings=64, vocab_size=VOCAB, tie_word_embeddings=False)
    layers._attn_implementation = "eager"
    head = model(config(transformer_layer_config=layers, draft_vocab_size=len(tokens), block_size=BLOCK, mask_token_id=MASK,
                        aux_hidden_state_layer_ids=[1, 3, 5], speculators_config=proposals(kind, BLOCK - 1), **flags))
    randomise(head, seed)
    if len(tokens) < VOCAB:
        draft_vocabulary(head, tokens, VOCAB)
    taps = torch.randn(1, TEXT, 3 * HIDDEN, generator=torch.Generator().manual_seed(seed + 1))
    x = head.embed_tokens(torch.tensor([PATH[:1] + [MASK] * (BLOCK - 1)]))
    positions = head.rotary_emb(x, torch.arange(TEXT + BLOCK)[None])
    for layer in head.layers:
        x = layer(target_hidden=head.hidden_norm(head.fc(taps)), hidden_states=x, position_embeddings=positions,
                  attention_mask=torch.zeros(1, 1, BLOCK, TEXT + BLOCK))
    states = head.norm(x)
    return head, taps, states, head.lm_head(states)


def golden(head, taps, tokens, logits, confidence=()):
    return {"path": PATH, "tokens": tokens, "taps": taps.flatten().tolist(), "embed": head.embed_tokens.weight.flatten().tolist(),
            "output": head.lm_head.weight.flatten().tolist(), "logits": logits.flatten().tolist(), "confidence": list(confidence)}


def dspark(name, seed, kind, tokens=ALL, anchor=True, with_markov=True):
    head, taps, states, unary = build(DSparkDraftModel, DSparkSpeculatorConfig, "dspark", seed, tokens, markov_rank=8, markov_head_type=kind,
                                      sample_from_anchor=anchor, confidence_head_with_markov=with_markov)
    first = 0 if anchor else 1
    states, unary = states[:, first:], unary[:, first:]
    before = torch.tensor([PATH[:BLOCK - first]])
    logits = unary + head.markov_head.block_bias(prev_token_ids=before, hidden_states=states)
    embed = head.markov_head.prev_embeddings(before)
    features = torch.cat((states, embed), dim=-1) if with_markov else states
    confidence = torch.sigmoid(head.confidence_head(features)).flatten().tolist()
    folder = "heads/" + name
    save(head, folder, golden(head, taps, tokens, logits, confidence))
    return folder


def dflash2(name, seed):
    head, taps, states, unary = build(DFlash2DraftModel, DFlash2SpeculatorConfig, "dflash2", seed, conv_kernel_size=2, conv_group_size=4,
                                      selector_rank=8, selector_top_k=20)
    states, unary = states[:, 1:], unary[:, 1:]
    before = torch.tensor([PATH[:BLOCK - 1]])
    every = torch.arange(VOCAB).expand(1, BLOCK - 1, VOCAB)
    save(head, "heads/" + name, golden(head, taps, ALL, head.candidate_selector.score_candidates(unary, states, before, every)))


def flat(folder, architecture, more):
    """Turns a folder into its authors' layout."""
    with open(folder + "/config.json") as f:
        said = json.load(f)
    config = dict(said["transformer_layer_config"], architectures=[architecture], model_type="qwen3", block_size=BLOCK, **more)
    with open(folder + "/config.json", "w") as f:
        json.dump(config, f, indent=1)


def domino(name, seed, shift):
    head, taps, states, unary = build(DFlashDraftModel, DFlashSpeculatorConfig, "dflash", seed)
    generator = torch.Generator().manual_seed(seed + 2)
    draw = lambda *shape: torch.randn(*shape, generator=generator) * 0.3  # noqa: E731
    width, rank = 12, 8
    gru = torch.nn.GRU(HIDDEN, width, batch_first=True, bias=False)
    gru.weight_ih_l0.data, gru.weight_hh_l0.data = draw(3 * width, HIDDEN), draw(3 * width, width)
    first, second = draw(rank, HIDDEN + width), draw(VOCAB, rank)
    prefixes = gru(head.embed_tokens(torch.tensor([PATH[:BLOCK - 1]])))[0]
    rows = slice(0, BLOCK - 1) if shift else slice(1, BLOCK)
    logits = unary[:, rows].clone()
    for i in range(1, BLOCK - 1):  # the first draft is not corrected
        joined = torch.cat((states[0, rows][i], prefixes[0, i]))
        logits[0, i] += second @ torch.nn.functional.silu(first @ joined)
    folder = "heads/" + name
    save(head, folder, golden(head, taps, ALL, logits))
    weights = load_file(folder + "/model.safetensors")
    weights |= {"prefix_gru.weight_ih_l0": gru.weight_ih_l0.data, "prefix_gru.weight_hh_l0": gru.weight_hh_l0.data,
                "embed_proj.0.weight": first, "embed_proj.2.weight": second}
    save_file(weights, folder + "/model.safetensors", {"format": "pt"})
    flat(folder, "DominoDraftModel", {"num_target_layers": 8, "dflash_config": {
        "projector_type": "domino", "mask_token_id": MASK, "target_layer_ids": [0, 2, 4], "emb_dim": rank, "gru_hidden_dim": width,
        "pure_draft_prefix_len": 1, "shift_label": shift}})


torch.set_grad_enabled(False)
dspark("vanilla", 1, "vanilla")
dspark("gated", 2, "gated", DRAFT_VOCAB)
dspark("rnn", 3, "rnn", with_markov=False)
dspark("not-anchor", 4, "rnn", anchor=False)
flat(dspark("deepspec", 5, "gated"), "Qwen3DSparkModel", {
    "target_layer_ids": [0, 2, 4], "mask_token_id": MASK, "markov_rank": 8, "markov_head_type": "gated", "enable_confidence_head": True,
    "confidence_head_with_markov": True, "num_target_layers": 8})
dflash2("dflash2", 6)
domino("domino", 7, False)
domino("domino-shifted", 8, True)
