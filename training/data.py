"""Pictures and boxes that the program `lidar_scenes` has written, and the targets of the network."""

import numpy as np
import torch
from torch.nn.functional import pixel_unshuffle

CELLS, OUTPUT_CELLS = 320, 80
# Length, width and height whose logarithm is zero; as in crates/lidar/src/boxes.rs.
REFERENCE_SIZE_M = (4.4, 1.85, 1.6)
# Vehicles with fewer points are neither vehicles nor background.
POINTS_MIN = 5
# Heights of the picture: 5.5 m in 255 steps.
LEVEL_M = 5.5 / 255

CENTRES_X, CENTRES_Y = np.meshgrid(np.arange(OUTPUT_CELLS) - 39.5, np.arange(OUTPUT_CELLS) - 39.5, indexing="ij")


def load(name):
    """Returns the pictures (scans x 4 x 320 x 320) and, for each scan, its boxes (n x 9)."""
    pictures = np.memmap(name + ".bev", np.uint8, "r").reshape(-1, 4, CELLS, CELLS)
    rows = np.fromfile(name + ".boxes", np.float32).reshape(-1, 10)
    scans = rows[:, 0].astype(int)
    return pictures, [rows[scans == scan, 1:] for scan in range(len(pictures))]


def augment(picture, boxes, random):
    """Returns the picture and boxes after a shift of the height, lost cells and a random symmetry of the square."""
    picture, boxes = picture.copy(), boxes.copy()
    levels = int(random.integers(-3, 4))
    heights = picture[:2]
    present = heights > 8
    heights[present] = np.clip(heights[present].astype(int) + levels, 1, 255)
    boxes[:, 2] += levels * LEVEL_M
    if random.random() < 0.3:
        picture[:, random.random((CELLS, CELLS)) < random.uniform(0, 0.3)] = 0
    x, y, yaw = boxes[:, 0].copy(), boxes[:, 1].copy(), boxes[:, 6].copy()
    if random.random() < 0.5:
        picture, x, yaw = picture[:, ::-1], -x, np.pi - yaw
    if random.random() < 0.5:
        picture, y, yaw = picture[:, :, ::-1], -y, -yaw
    if random.random() < 0.5:
        picture, x, y, yaw = picture.transpose(0, 2, 1), y, x, np.pi / 2 - yaw
    boxes[:, 0], boxes[:, 1], boxes[:, 6] = x, y, yaw
    return picture, boxes


def network_input(pictures):
    """Returns a tensor of 16 channels of every second cell of every second row, values 0 to 1."""
    return pixel_unshuffle(torch.from_numpy(np.stack(pictures)).float(), 2) / 255


def target(boxes):
    """Returns the wanted scores, the weights of the box values, the weights of the background, and the box values."""
    scores = np.zeros((OUTPUT_CELLS, OUTPUT_CELLS), np.float32)
    weights = np.zeros_like(scores)
    background = np.ones_like(scores)
    values = np.zeros((8, OUTPUT_CELLS, OUTPUT_CELLS), np.float32)
    for x, y, z, length, width, height, yaw, _, points in boxes:
        if abs(x) > 41 or abs(y) > 41:
            continue
        row, column = int(np.floor(x + 40)), int(np.floor(y + 40))
        window = (slice(max(0, row - 4), max(0, row + 5)), slice(max(0, column - 4), max(0, column + 5)))
        dx, dy = CENTRES_X[window] - x, CENTRES_Y[window] - y
        along, across = dx * np.cos(yaw) + dy * np.sin(yaw), dy * np.cos(yaw) - dx * np.sin(yaw)
        near = np.exp(-0.5 * ((along / max(length / 6, 0.55)) ** 2 + (across / max(width / 5, 0.5)) ** 2))
        if points < POINTS_MIN:
            background[window] = np.where(near > 0.05, 0, background[window])
            continue
        if 0 <= row < OUTPUT_CELLS and 0 <= column < OUTPUT_CELLS:
            near[row - window[0].start, column - window[1].start] = 1
        scores[window] = np.maximum(scores[window], near)
        own = (near > 0.35) & (near > weights[window])
        weights[window] = np.where(own, near, weights[window])
        sizes = [np.log(size / reference) for size, reference in zip((length, width, height), REFERENCE_SIZE_M)]
        wanted = (-dx, -dy, sizes[0], sizes[1], np.sin(2 * yaw), np.cos(2 * yaw), z, sizes[2])
        for channel, value in enumerate(wanted):
            values[channel][window] = np.where(own, value, values[channel][window])
    return scores, weights, np.where(scores > 0.05, 1, background), values
