# Makes codebooks.safetensors: modules of bitsandbytes with random weights of 4 bits, as that package saves them. Its metadata has, for
# each module, the fnv1a-64 of the bytes that bitsandbytes makes of the weights.
#
#   python codebooks.py
#
# Packages: torch, safetensors, bitsandbytes (0.50).
import bitsandbytes as bnb
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from bitsandbytes.functional import dequantize_4bit, dequantize_blockwise
from safetensors.torch import save_file

torch.manual_seed(1)
tensors, sums = {}, {}


def fnv(x):
    h = 0xCBF29CE484222325
    for byte in (x + 0.0).contiguous().view(torch.uint8).numpy().tobytes():  # zeros have no sign
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return f"{h:016x}"


def save(name, rows, cols, dtype, kind, nested, block=64):
    module = bnb.nn.Linear4bit(cols, rows, bias=False, compress_statistics=nested, quant_type=kind)
    weights = (torch.randn(rows, cols) * 0.1).to(dtype)
    module.weight = bnb.nn.Params4bit(weights, requires_grad=False, blocksize=block, compress_statistics=nested, quant_type=kind)
    module = module.to("cpu")
    for part, x in module.state_dict().items():
        tensors[name + "." + part] = x.clone()
    w = module.weight
    assert w.quant_state.blocksize == block and w.quant_state.nested == nested
    q = w.quant_state
    scales = dequantize_blockwise(q.absmax, q.state2) + q.offset if nested else q.absmax
    numbers = _dequantize_4bit_compute(w.data.reshape(-1), scales, q.code, block, q.shape, dtype)
    if cols % block == 0:  # version 0.50 begins a block with each row on CPUs with AVX-512
        assert torch.equal(numbers, dequantize_4bit(w.data, q))
    sums[name] = fnv(numbers)


save("BF16.NF4", 80, 256, torch.bfloat16, "nf4", True)
save("F16.NF4", 9, 48, torch.float16, "nf4", False)
save("F32.FP4", 7, 33, torch.float32, "fp4", True, 128)
save_file(tensors, "codebooks.safetensors", metadata=sums)
