"""Writes outputs of a trained network for a fixed input, which the test of the program compares with its own.

python vector.py NETWORK.pt > crates/components/tests/detector/torch.txt
"""

import sys

import numpy as np
import torch
from network import OUTPUTS, Network


def test_input():
    """Returns the input of crates/components/tests/detector.rs."""
    hashes = (np.arange(16 * 160 * 160, dtype=np.uint64) * 2654435761 + 12345) % 2**32
    values = np.where((hashes >> 8) % 7 == 0, (hashes >> 24) / 255, 0)
    return torch.from_numpy(values.astype(np.float32)).view(1, 16, 160, 160)


if __name__ == "__main__":
    network = Network().eval()
    network.load_state_dict(torch.load(sys.argv[1]))
    with torch.no_grad():
        cells = network(test_input())[0]
    print(f"# Output of PyTorch {torch.__version__}: channel, row, column, value.")
    random = np.random.default_rng(0)
    for channel in range(OUTPUTS):
        for row, column in random.integers(0, 80, (10, 2)):
            print(channel, row, column, f"{cells[channel, row, column].item():.6f}")
