"""The network: bird's-eye view in, one cell of 1 m out."""

import torch
import torch.nn.functional as functional
from torch import nn

# Channels at 160, 80 and 40 cells a row, and number of residual blocks at 40.
STEM, MIDDLE, DEEP, RESIDUALS = 16, 32, 48, 3
# Score, dx, dy, log length, log width, sin 2a, cos 2a, z, log height.
OUTPUTS = 9


def convolution(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return functional.relu(x + self.norm(self.convolution(x)))


class Network(nn.Module):
    """Input: batch x 16 x 160 x 160, values 0 to 1. Output: batch x 9 x 80 x 80."""

    def __init__(self):
        super().__init__()
        self.stem = convolution(16, STEM)
        self.middle = nn.Sequential(convolution(STEM, MIDDLE, 2), Residual(MIDDLE))
        self.deep = nn.Sequential(convolution(MIDDLE, DEEP, 2), *[Residual(DEEP) for _ in range(RESIDUALS)])
        self.up = nn.ConvTranspose2d(DEEP, MIDDLE, 2, 2)
        self.fuse = convolution(MIDDLE, MIDDLE)
        self.head = nn.Conv2d(MIDDLE, OUTPUTS, 1)
        with torch.no_grad():
            self.head.bias.zero_()
            # Few cells hold a vehicle: begin with a low score.
            self.head.bias[0] = -4.0
            self.head.weight.mul_(0.1)

    def forward(self, x):
        middle = self.middle(self.stem(x))
        deep = self.deep(middle)
        return self.head(self.fuse(functional.relu(self.up(deep) + middle)))
