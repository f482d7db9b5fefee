"""Writes grids.bin, the codebooks of the IQ types, from those of gguf-py: python grids.py

An entry is the numbers of its elements' levels, the first element in the lowest bits: of IQ2_XXS, IQ2_XS, IQ2_S and
IQ1_S (which is IQ1_M's too) eight of 2 bits, of IQ3_XXS and IQ3_S four of 4 bits. Entries are 16 bits, little endian,
the codebooks one after another in that order of names.
"""

import numpy as np
from gguf import quants

LEVELS = {
    "IQ2_XXS": (8, 25, 43), "IQ2_XS": (8, 25, 43), "IQ2_S": (8, 25, 43), "IQ1_S": (-1, 0, 1),
    "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62), "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15),
}

with open("grids.bin", "wb") as f:
    for name, levels in LEVELS.items():
        codebook = getattr(quants, name)
        codebook.init_grid()
        grid = codebook.grid.reshape(codebook.grid_shape)
        numbers = np.array([[levels.index(int(v)) for v in entry] for entry in grid], dtype=np.uint32)
        shifts = np.arange(numbers.shape[1], dtype=np.uint32) * (16 // numbers.shape[1])
        f.write((numbers << shifts).sum(axis=1).astype("<u2").tobytes())
