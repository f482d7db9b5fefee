"""Writes speculators/: small DFlash heads as vLLM's speculators package (0.9.0) saves them, and what its layers compute with
them, for TestAsSpeculators: full layers, layers with a window that see a block both ways or not, a part of the vocabulary.

Run it in this folder with that package, PyTorch and transformers 5.24. Each row of a block has a window of its own, as in
z-lab's loop and in vLLM; the package trains all of them with the first one's.
"""

import sys

sys.path.insert(0, "../../../testing/testdata")
from speculator import draft_vocabulary, proposals, randomise, save  # noqa: E402

import torch  # noqa: E402
from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig  # noqa: E402
from transformers import Qwen3Config  # noqa: E402

HIDDEN, VOCAB, BLOCK, MASK = 16, 20, 4, 19
DRAFT_VOCAB = [0, 1, 2, 3, 5, 7, 8, 11, 13, 14, 17, 18]
TEXT, ROOT = 7, 3  # tokens of the text, and the newest token behind it


def write(name, seed, types, tokens=tuple(range(VOCAB)), non_causal=False, width=32):
    layers = Qwen3Config(hidden_size=HIDDEN, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                         num_hidden_layers=len(types), rms_norm_eps=1e-5, max_position_embeddings=64, vocab_size=VOCAB, layer_types=types,
                         use_sliding_window="sliding_attention" in types, sliding_window=width, tie_word_embeddings=False)
    layers._attn_implementation = "eager"
    head = DFlashDraftModel(DFlashSpeculatorConfig(
        transformer_layer_config=layers, draft_vocab_size=len(tokens), block_size=BLOCK, aux_hidden_state_layer_ids=[1, 3, 5],
        mask_token_id=MASK, sliding_window_non_causal=non_causal, speculators_config=proposals("dflash", BLOCK - 1)))
    randomise(head, seed)
    if len(tokens) < VOCAB:
        draft_vocabulary(head, list(tokens), VOCAB)
    taps = torch.randn(1, TEXT, 3 * HIDDEN, generator=torch.Generator().manual_seed(seed + 1))
    context = head.hidden_norm(head.fc(taps))
    x = head.embed_tokens(torch.tensor([[ROOT] + [MASK] * (BLOCK - 1)]))
    positions = head.rotary_emb(x, torch.arange(TEXT + BLOCK)[None])
    for layer, kind in zip(head.layers, types):
        query, key = TEXT + torch.arange(BLOCK)[:, None], torch.arange(TEXT + BLOCK)[None]
        visible = torch.ones(BLOCK, TEXT + BLOCK, dtype=torch.bool)
        if kind == "sliding_attention":
            visible = (query - key < width) & (non_causal | (key <= query))
        mask = torch.zeros(1, 1, BLOCK, TEXT + BLOCK).masked_fill(~visible, torch.finfo(torch.float32).min)
        x = layer(target_hidden=context, hidden_states=x, attention_mask=mask, position_embeddings=positions)
    logits = head.lm_head(head.norm(x))
    save(head, "speculators/" + name, {
        "root": ROOT, "tokens": list(tokens), "taps": taps.flatten().tolist(), "embed": head.embed_tokens.weight.flatten().tolist(),
        "output": head.lm_head.weight.flatten().tolist(), "logits": logits.flatten().tolist()})


torch.set_grad_enabled(False)
full, window = "full_attention", "sliding_attention"
write("full", 1, [full, full])
write("windows", 2, [window, window])
write("mixed", 3, [window, full, window])
write("both-ways", 4, [window, full], non_causal=True)
write("narrow", 6, [window, full], width=5)
write("narrow-both-ways", 7, [full, window], non_causal=True, width=5)
write("draft-vocabulary", 5, [full, window], DRAFT_VOCAB)
