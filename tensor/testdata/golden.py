"""Prints the lines of golden.txt for the types that package codebook decodes: python golden.py >>golden.txt

The blocks are those that randomBlocks() in golden_test.go makes, decoded by gguf-py; Q1_0 and Q2_0, which it does not
decode, by their definition.
"""

import numpy as np
from gguf import GGMLQuantizationType, quants

# Types, their numbers in goldenTypes, bytes of a block, and where its half-precision scale is.
TYPES = [
    ("IQ1_S", 16, 50, 0), ("IQ1_M", 17, 56, 54), ("IQ2_XXS", 18, 66, 0), ("IQ2_XS", 19, 74, 0), ("IQ2_S", 20, 82, 0),
    ("IQ3_XXS", 21, 98, 0), ("IQ3_S", 22, 110, 0), ("TQ1_0", 23, 54, 52), ("TQ2_0", 24, 66, 64), ("Q1_0", 25, 18, 0),
    ("Q2_0", 26, 18, 0),
]
BLOCKS = 512


def random_blocks(number, size, scale):
    state, data = 100 + number, np.empty(BLOCKS * size, np.uint8)
    for i in range(len(data)):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        data[i] = state >> 56
    data[scale + 1 :: size] &= 0xBF
    return data.reshape(BLOCKS, size)


def decode(name, data):
    if name in ("Q1_0", "Q2_0"):
        d = data[:, :2].copy().view(np.float16).astype(np.float32)
        bits = int(name[1])
        q = (data[:, 2:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & (2**bits - 1)).reshape(BLOCKS, -1)
        integers = q.astype(np.int8) * 2 - 1 if bits == 1 else q.astype(np.int8) - 1
        return d * integers.astype(np.float32)
    return quants.dequantize(data, GGMLQuantizationType[name])


for name, number, size, scale in TYPES:
    values = decode(name, random_blocks(number, size, scale)).astype("<f4")
    h = 0xCBF29CE484222325
    for byte in values.tobytes():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    print(f"decode {name.lower()} {BLOCKS} {h:016x}")
