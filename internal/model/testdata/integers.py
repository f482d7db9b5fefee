# Makes integers.safetensors: random weights of 4 and 8 bits as AWQ, GPTQ, compressed-tensors and bitsandbytes (8 bits) lay them out,
# packed by vLLM's, compressed-tensors' and bitsandbytes' functions. Module METHOD.NAME has its weights in float32 as METHOD.NAME.expected.
#
#   python integers.py
#
# Packages: torch, safetensors, compressed-tensors, vllm, bitsandbytes.
import torch
from bitsandbytes.functional import int8_vectorwise_dequant, int8_vectorwise_quant
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import save_file
from vllm.model_executor.layers.quantization.utils.quant_utils import awq_pack, gptq_pack, pack_cols

torch.manual_seed(1)
tensors = {}


def random(rows, cols, bits, groups, symmetric, dtype):
    """Returns codes, scales and zero points of rows x cols weights."""
    codes = torch.randint(0, 1 << bits, (rows, cols), dtype=torch.int32)
    scales = (torch.rand(rows, groups) * 0.01 + 0.001).to(dtype)
    zeros = torch.full((rows, groups), 1 << bits - 1, dtype=torch.int32)
    if not symmetric:
        zeros = torch.randint(1, 1 << bits, (rows, groups), dtype=torch.int32)
    return codes, scales, zeros


def expect(name, codes, scales, zeros, group):
    tensors[name + ".expected"] = (codes - zeros[:, group]).float() * scales.float()[:, group]


def in_order(cols, groups):
    return torch.arange(cols) // (cols // groups)


def awq(name, rows, cols, groups, symmetric=False):
    codes, scales, zeros = random(rows, cols, 4, groups, symmetric, torch.float16)
    tensors[name + ".qweight"] = awq_pack(codes.T.contiguous(), 4, cols, rows)
    tensors[name + ".qzeros"] = awq_pack(zeros.T.contiguous(), 4, groups, rows)
    tensors[name + ".scales"] = scales.T.contiguous()
    expect(name, codes, scales, zeros, in_order(cols, groups))


def gptq(name, rows, cols, bits, groups, symmetric=True, shuffled=False, minus=1):
    codes, scales, zeros = random(rows, cols, bits, groups, symmetric, torch.float16)
    group = in_order(cols, groups)
    if shuffled:
        group = group[torch.randperm(cols)]
    tensors[name + ".qweight"] = gptq_pack(codes.T.contiguous(), bits, cols, rows)
    tensors[name + ".qzeros"] = pack_cols((zeros - minus).T.contiguous(), bits, groups, rows)
    tensors[name + ".scales"] = scales.T.contiguous()
    tensors[name + ".g_idx"] = group.int()
    tensors[name + ".bias"] = torch.zeros(rows, dtype=torch.float16)
    expect(name, codes, scales, zeros, group)


def packed(name, rows, cols, bits, groups, symmetric=True, shuffled=False):
    codes, scales, zeros = random(rows, cols, bits, groups, symmetric, torch.bfloat16)
    group, middle = in_order(cols, groups), 1 << bits - 1
    tensors[name + ".weight_packed"] = pack_to_int32((codes - middle).to(torch.int8), bits)
    tensors[name + ".weight_scale"] = scales
    tensors[name + ".weight_shape"] = torch.tensor([rows, cols])
    if not symmetric:
        tensors[name + ".weight_zero_point"] = pack_to_int32((zeros - middle).to(torch.int8), bits, packed_dim=0).contiguous()
    if shuffled:
        group = group[torch.randperm(cols)]
        tensors[name + ".weight_g_idx"] = group.int()
    expect(name, codes, scales, zeros, group)


def wide(name, rows, cols, symmetric=True):
    codes, scales, zeros = random(rows, cols, 8, 1, symmetric, torch.float32)
    tensors[name + ".weight"] = (codes - 128).to(torch.int8)
    tensors[name + ".weight_scale"] = scales
    if not symmetric:
        tensors[name + ".weight_zero_point"] = (zeros - 128).to(torch.int8)
    expect(name, codes, scales, zeros, in_order(cols, 1))


def vectors(name, rows, cols):
    codes, scales, _ = int8_vectorwise_quant((torch.randn(rows, cols) * 0.1).half())
    tensors[name + ".weight"], tensors[name + ".SCB"] = codes, scales
    tensors[name + ".weight_format"] = torch.tensor(0, dtype=torch.uint8)
    tensors[name + ".expected"] = int8_vectorwise_dequant(codes, scales)


awq("awq.Q4_1", 24, 128, 2)
awq("awq.Q4_0", 16, 64, 2, symmetric=True)
awq("awq.F32", 16, 48, 3)
gptq("gptq.Q4_0", 24, 128, 4, 2)
gptq("gptq.Q8_0", 16, 96, 8, 3)
gptq("gptq.Q4_1", 16, 64, 4, 1, symmetric=False)
gptq("gptq.F32", 16, 64, 4, 2, shuffled=True)
gptq("gptq_v2.Q4_1", 16, 64, 4, 2, symmetric=False, minus=0)
packed("compressed-tensors.Q4_0", 24, 128, 4, 4)
packed("compressed-tensors.Q4_1", 24, 64, 4, 1, symmetric=False)
packed("compressed-tensors.Q8_0", 12, 64, 8, 2)
packed("compressed-tensors.F32", 16, 64, 4, 2, shuffled=True)
wide("compressed-tensors.bytes.Q8_0", 12, 64)
wide("compressed-tensors.bytes.F32", 12, 64, symmetric=False)
vectors("bitsandbytes.Q8_0", 12, 64)
vectors("bitsandbytes.F32", 10, 40)
save_file(tensors, "integers.safetensors")
