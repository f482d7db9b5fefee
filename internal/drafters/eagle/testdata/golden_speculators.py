"""Writes speculators/: small EAGLE-3 heads as vLLM's speculators package (0.9.0) saves them, and what its layers compute with
them, for TestAsSpeculators: the kinds of residual, both norms before fc, EAGLE-3.1, Qwen3's norms, several layers, all tokens.

Run it in this folder with that package, PyTorch and transformers 5.24.
"""

import sys

sys.path.insert(0, "../../../testing/testdata")
from speculator import draft_vocabulary, proposals, randomise, save  # noqa: E402

import torch  # noqa: E402
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig  # noqa: E402
from transformers import LlamaConfig, Qwen3Config  # noqa: E402

HIDDEN, VOCAB = 16, 20
DRAFT_VOCAB = [0, 1, 2, 3, 5, 7, 8, 11, 13, 14, 17, 19]
TOKENS = [3, 1, 4, 1, 5, 9, 2]  # of the entries of the text
DRAFT = [6, 5, 3]  # drafted below the last of them, each from the state of the row before


def write(name, seed, family=LlamaConfig, layers=1, tokens=DRAFT_VOCAB, **flags):
    layer = family(hidden_size=HIDDEN, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                   num_hidden_layers=layers, rms_norm_eps=1e-5, max_position_embeddings=64, vocab_size=VOCAB, tie_word_embeddings=False)
    layer._attn_implementation = "eager"
    config = Eagle3SpeculatorConfig(transformer_layer_config=layer, draft_vocab_size=len(tokens), eagle_aux_hidden_state_layer_ids=[2, 4, 5],
                                    speculators_config=proposals("eagle3", 3), **flags)
    head = Eagle3DraftModel(config)
    randomise(head, seed)
    if len(tokens) < VOCAB:
        draft_vocabulary(head, tokens, VOCAB)
    taps = torch.randn(1, len(TOKENS), 3 * HIDDEN, generator=torch.Generator().manual_seed(seed + 1))
    joined = taps
    if head.input_norm is not None:
        joined = head.input_norm(joined)
    if head.fc_norm is not None:
        joined = torch.cat([norm(part) for norm, part in zip(head.fc_norm, joined.chunk(3, dim=-1))], dim=-1)
    features, text = head.fc(joined), list(TOKENS)
    for token in [None] + DRAFT:
        if token is not None:
            text, features = text + [token], torch.cat((features, states[:, -1:]), dim=1)
        n = len(text)
        mask = torch.full((1, 1, n, n), torch.finfo(torch.float32).min).triu(1)
        x = torch.cat((head.embed_tokens(torch.tensor([text])), features), dim=-1)
        positions = head.rotary_emb(x, 1 + torch.arange(n)[None])
        for block in head.layers:
            x = block(x, attention_mask=mask, position_embeddings=positions)
        states = head.norm(x) if config.norm_output else x
    logits = head.lm_head(states if config.norm_output else head.norm(states))
    save(head, "speculators/" + name, {"tokens": TOKENS, "draft": DRAFT, "vocabulary": tokens, "taps": taps.flatten().tolist(),
                                       "logits": logits.flatten().tolist()})


torch.set_grad_enabled(False)
write("plain", 1)
write("residual", 2, norm_before_residual=True)
write("before-fc", 3, norm_before_fc=True, layers=2)
write("three-one", 4, Qwen3Config, fc_norm=True, norm_output=True, norm_before_residual=True)
write("qwen3-layers", 5, Qwen3Config, layers=3, norm_before_residual=True)
write("all-tokens", 6, tokens=list(range(VOCAB)), norm_output=True)
