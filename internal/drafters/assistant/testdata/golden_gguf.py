"""Writes heads/llama.cpp.gguf: heads/dense as llama.cpp's own converter has it.

    python3 golden_gguf.py LLAMA_CPP

The tiny folder has no tokenizer, and transformers 5.24 saves no global_head_dim: both are filled in.
"""
import json
import pathlib
import shutil
import sys
import tempfile

sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
import conversion.gemma as gemma  # noqa: E402
import gguf  # noqa: E402

HERE = pathlib.Path(__file__).parent / "heads"
gemma.Gemma4AssistantModel.set_vocab = lambda self: None
with tempfile.TemporaryDirectory() as d:
    folder = pathlib.Path(d) / "dense"
    shutil.copytree(HERE / "dense", folder)
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": [], "model": {"vocab": {str(i): i for i in range(64)}}}))
    model = gemma.Gemma4AssistantModel(folder, gguf.LlamaFileType.ALL_F32, HERE / "llama.cpp.gguf")
    model.hparams["global_head_dim"] = 32
    model.write()
