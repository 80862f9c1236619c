"""A program that is an oracle, for `program.py`: rows of bits, in Python in place of another language.

The folder that it is given has a file per split, train.txt and test.txt, with a block a line: its true bits, then as many
numbers, such as `0110 -0.3 1.2 0.7 -1.1`. A bit scores w_0 times its number, and two equal neighbours w_1. The best row is
found by dynamic programming over the bits (Viterbi).

    {"ask": "sizes", "split": "train"}                  [50, 2, 2]      blocks, d, labels
    {"ask": "truth", "block": 0}                        [0, 1, 1, 0]
    {"ask": "features", "block": 0, "y": [0, 1, 1, 0]}  [1.9, 1]        d numbers
    {"ask": "loss", "block": 0, "y": [0, 1, 1, 1]}      0.25
    {"ask": "least_loss", "block": 0}                   0.25
    {"ask": "max_oracle", "block": 0, "theta": [1, 0]}  [1, 1, 1, 0]    theta is w
    {"ask": "decode", "block": 0, "theta": [1, 0]}      [0, 1, 1, 0]
"""

import json
import sys
from itertools import pairwise
from pathlib import Path


def read(folder, split):
    """Blocks as pairs of bits and numbers."""
    blocks = []
    for line in (Path(folder) / f"{split}.txt").read_text().splitlines():
        bits, *numbers = line.split()
        blocks.append(([int(bit) for bit in bits], [float(number) for number in numbers]))
    return blocks


def best(truth, x, w, loss):
    """The row y with the largest loss * L(y) + <w, features>."""
    score, back = [0.0, 0.0], []
    for t in range(len(x)):
        own = [loss * (bit != truth[t]) / len(x) + w[0] * x[t] * bit for bit in (0, 1)]
        if t:
            turn = [score[1 - bit] > score[bit] + w[1] for bit in (0, 1)]  # the bit before is the other one
            back.append([1 - bit if turn[bit] else bit for bit in (0, 1)])
            own = [own[bit] + (score[1 - bit] if turn[bit] else score[bit] + w[1]) for bit in (0, 1)]
        score = own
    y = [int(score[1] > score[0])]
    for before in reversed(back):
        y.append(before[y[-1]])
    return y[::-1]


def answer(question, blocks):
    """The answer to a question about a block."""
    truth, x = blocks[question["block"]]
    what, y = question["ask"], question.get("y")
    if what == "truth":
        return truth
    if what == "features":
        return [sum(a * b for a, b in zip(x, y, strict=True)), sum(a == b for a, b in pairwise(y))]
    if what == "loss":
        return sum(a != b for a, b in zip(truth, y, strict=True)) / len(y)
    if what == "least_loss":
        return 1 / len(truth)
    return best(truth, x, question["theta"], 1.0 if what == "max_oracle" else 0.0)


blocks = []
for line in sys.stdin:
    question = json.loads(line)
    if question["ask"] == "sizes":
        blocks = read(sys.argv[1], question["split"])
        reply = [len(blocks), 2, 2]
    else:
        reply = answer(question, blocks)
    print(json.dumps(reply), flush=True)
