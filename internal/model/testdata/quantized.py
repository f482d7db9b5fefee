# Makes quantized.safetensors: random tensors of quantized modules, as DeepSeek's and Qwen's FP8 folders, compressed-tensors and modelopt
# name and lay them out. Its metadata has, for each module, the fnv1a-64 of the f32 bytes that torch makes of it (of compressed-tensors'
# NVFP4, that package).
#
#   python quantized.py
#
# Packages: torch, safetensors, compressed-tensors.
import torch
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file

torch.manual_seed(1)
tensors, sums = {}, {}


def fnv(x):
    h = 0xCBF29CE484222325
    for byte in (x + 0.0).contiguous().numpy().tobytes():  # zeros have no sign
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return f"{h:016x}"


def codes(*shape):
    """Returns random FP8 numbers without NaNs."""
    bits = torch.randint(0, 127, shape, dtype=torch.uint8) | torch.randint(0, 2, shape, dtype=torch.uint8) << 7
    return bits.view(torch.float8_e4m3fn)


def spread(scale, rows, cols, block):
    """Returns a scale for each weight of those for blocks."""
    return scale.float().repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)[..., :rows, :cols]


def fp8(name, end, shape, scale, block):
    w = tensors[name] = codes(*shape)
    tensors[name + end] = scale
    sums[name] = fnv(w.float() * (spread(scale, *shape[-2:], block) if scale.dim() > 1 else scale.float()))


fp8("block.weight", "_scale_inv", (140, 160), torch.rand(2, 2) * 1e-3, (128, 128))
fp8("channel.weight", "_scale", (20, 32), (torch.rand(20, 1) * 1e-3).bfloat16(), (1, 32))
fp8("whole.weight", "_scale", (8, 16), torch.tensor(0.00123), None)
fp8("experts.gate_up_proj", "_scale_inv", (3, 130, 16), torch.rand(3, 2, 1) * 1e-3, (128, 128))
tensors["whole.input_scale"] = torch.tensor(0.5)

packed = tensors["packed.weight_packed"] = torch.randint(0, 256, (24, 32), dtype=torch.uint8)
scale = tensors["packed.weight_scale"] = codes(24, 4).float().abs().to(torch.float8_e4m3fn)
whole = tensors["packed.weight_global_scale"] = torch.tensor([1234.5])
tensors["packed.input_global_scale"] = torch.tensor([7.0])
args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True)
sums["packed.weight"] = fnv(dequantize(unpack_fp4_from_uint8(packed, 24, 64, torch.float32), scale.float(), args=args, global_scale=whole))

packed = tensors["modelopt.weight"] = torch.randint(0, 256, (24, 32), dtype=torch.uint8)
scale = tensors["modelopt.weight_scale"] = codes(24, 4).float().abs().to(torch.float8_e4m3fn)
whole = tensors["modelopt.weight_scale_2"] = torch.tensor(0.00321)
values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
e2m1 = values[torch.stack([packed & 15, packed >> 4], -1).reshape(24, 64).long()]
sums["modelopt.weight"] = fnv(e2m1 * spread(scale.float() * whole, 24, 64, (1, 16)))

save_file(tensors, "quantized.safetensors", metadata=sums)
