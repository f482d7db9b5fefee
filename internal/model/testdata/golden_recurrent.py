"""Writes golden_SHAPE.json: what transformers computes for a random model in F32.

    grove-lab synth SHAPE m.gguf --type f32 --seed 1
    grove convert m.gguf m-folder
    python golden_recurrent.py SHAPE m-folder [context]
"""
import json, random, sys
import torch, transformers

shape, folder = sys.argv[1:3]
torch.set_grad_enabled(False)
torch.set_num_threads(1)
config = transformers.AutoConfig.from_pretrained(folder)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager").eval()
rng = random.Random(1)
ids = [rng.randrange(8, config.get_text_config().vocab_size) for _ in range(100)]
text, greedy, margin = list(ids), [], []
for i in range(33):
    logits = model(torch.tensor([text])).logits[0, -1]
    if i == 0:
        last = logits
    best = torch.topk(logits, 2)
    if i < 32:
        greedy.append(int(best.indices[0]))
        margin.append(round(float(best.values[0] - best.values[1]), 6))
        text.append(greedy[-1])
json.dump({"context": config.get_text_config().max_position_embeddings, "greedy": greedy, "greedy_margin": margin,
           "how": "transformers on the folder, whole text each time, F32, 1 thread", "last_logits": [round(float(x), 7) for x in last],
           "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, by golden_recurrent.py", "prompt_ids": ids, "seed": 1,
           "shape": shape}, open(f"golden_{shape}.json", "w"), separators=(",", ":"))
