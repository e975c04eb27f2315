"""Trains the network on generated scans, and writes its weights (OUTPUT.pt) and the network as ONNX (OUTPUT.onnx).

python train.py DATA OUTPUT [--samples N] [--seed N] [--threads N]
"""

import argparse
import copy
import time

import numpy as np
import torch
import torch.nn.functional as functional
from data import augment, load, network_input, target
from network import Network

BATCH = 8
LEARNING_RATE, WEIGHT_DECAY = 4e-3, 1e-3
WARM_UP = 0.05
AVERAGE_DECAY = 0.999
# Weights of dx, dy, log length, log width, sin 2a, cos 2a, z, log height, and of all of them against the score.
VALUE_WEIGHTS, BOX_WEIGHT = (1, 1, 1, 1, 1, 1, 0.3, 0.5), 1.5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("output")
    parser.add_argument("--samples", type=int, default=96_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def score_loss(logits, scores, background):
    """Focal loss of CenterNet (Zhou, Wang, Kraehenbuehl: "Objects as points", 2019)."""
    p = torch.sigmoid(logits).clamp(1e-4, 1 - 1e-4)
    centre = (scores == 1).float()
    hit = centre * (1 - p) ** 2 * p.log()
    miss = (1 - centre) * background * (1 - scores) ** 4 * p**2 * (1 - p).log()
    return -(hit + miss).sum() / centre.sum().clamp(min=1)


def box_loss(outputs, values, weights):
    error = functional.smooth_l1_loss(outputs, values, reduction="none", beta=0.1)
    error = error * torch.tensor(VALUE_WEIGHTS).view(1, 8, 1, 1) * weights[:, None]
    return error.sum() / weights.sum().clamp(min=1)


def learning_rate(progress):
    if progress < WARM_UP:
        return LEARNING_RATE * (0.05 + 0.95 * progress / WARM_UP)
    return LEARNING_RATE * (0.5 + 0.5 * np.cos(np.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def batches(pictures, boxes, count, random):
    """Yields inputs and targets. Each scan is used once before any is used again."""
    order = np.concatenate([random.permutation(len(pictures)) for _ in range(count // len(pictures) + 1)])
    for start in range(0, count, BATCH):
        drawn = [augment(pictures[scan], boxes[scan], random) for scan in order[start : start + BATCH]]
        inputs = network_input([picture for picture, _ in drawn])
        targets = zip(*[target(boxes) for _, boxes in drawn])
        yield inputs, [torch.from_numpy(np.stack(part).astype(np.float32)) for part in targets]


def train(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    pictures, boxes = load(options.data)
    network = Network().to(memory_format=torch.channels_last)
    average = copy.deepcopy(network)
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)
    started, losses = time.time(), []
    for step, (inputs, targets) in enumerate(batches(pictures, boxes, options.samples, random)):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step * BATCH / options.samples)
        with torch.autocast("cpu", torch.bfloat16):
            outputs = network(inputs.contiguous(memory_format=torch.channels_last))
        outputs = outputs.float()
        scores, weights, background, values = targets
        parts = score_loss(outputs[:, 0], scores, background), box_loss(outputs[:, 1:], values, weights)
        optimiser.zero_grad(set_to_none=True)
        (parts[0] + BOX_WEIGHT * parts[1]).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimiser.step()
        follow(average, network, min(AVERAGE_DECAY, (step + 1) / (step + 10)))
        losses.append([part.item() for part in parts])
        if step % 250 == 249:
            score, box = np.mean(losses, 0)
            minutes = (time.time() - started) / 60, time.process_time() / 60
            print(f"{(step + 1) * BATCH} samples, {minutes[0]:.1f} min ({minutes[1]:.1f} CPU), "
                  f"score {score:.3f}, box {box:.3f}", flush=True)
            losses.clear()
            torch.save(average.state_dict(), options.output + ".pt")
    torch.save(average.state_dict(), options.output + ".pt")
    return average


def follow(average, network, decay):
    """Moves the average of the weights towards those of the network."""
    with torch.no_grad():
        for mean, new in zip(average.state_dict().values(), network.state_dict().values()):
            if mean.is_floating_point():
                mean.lerp_(new, 1 - decay)
            else:
                mean.copy_(new)


def export(network, output):
    network = network.to(memory_format=torch.contiguous_format).eval()
    example = torch.zeros(1, 16, 160, 160)
    torch.onnx.export(
        network, example, output + ".onnx", input_names=["picture"], output_names=["cells"], opset_version=17, dynamo=False
    )


if __name__ == "__main__":
    options = arguments()
    export(train(options), options.output)
