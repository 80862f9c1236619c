"""A program that is an oracle: rows of bits, in the protocol of `stages/problems/oracle_server.py`.

It stands for a program in any language, as `oracle_server.pl` does in Perl. The folder that it is given has a file per
split, train.txt and test.txt, with a block a line: its true bits, then as many numbers. A bit scores w_0 times its number,
and two equal neighbours w_1. The best row is found by dynamic programming over the bits (Viterbi).

    python -m pipeline dataset=oracle_server dataset.command="'python tests/examples/oracle_server.py bits'" \\
        dataset.files=[bits/train.txt,bits/test.txt]
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


def near(truth, x, w, m):
    """The row `best`, and the best rows that differ from it in one bit: m at most."""
    y, answers = best(truth, x, w, 1.0), []
    for t, bit in enumerate(y):
        before, after = [1 - bit == y[s] for s in (t - 1,) if t], [1 - bit == y[s] for s in (t + 1,) if t + 1 < len(y)]
        turned = w[0] * x[t] * (1 - 2 * bit) + (1 if bit == truth[t] else -1) / len(x)
        answers.append((turned + w[1] * sum(1 if same else -1 for same in before + after), t))
    flips = [t for _, t in sorted(answers, key=lambda pair: -pair[0])]
    return [y, *([*y[:t], 1 - y[t], *y[t + 1 :]] for t in flips)][:m]


def answer(question, blocks):
    """The answer to a question about a block."""
    truth, x = blocks[question["block"]]
    what, y, w = question["ask"], question.get("y"), question.get("theta")
    if what == "truth":
        return truth
    if what == "features":
        equal = sum(a == b for a, b in pairwise(y))
        return [sum(a * b for a, b in zip(x, y, strict=True)), equal]
    if what == "loss":
        return sum(a != b for a, b in zip(truth, y, strict=True)) / len(y)
    if what == "least_loss":
        return 1 / len(truth)
    if what == "max_oracles":
        return near(truth, x, w, question["m"])
    return best(truth, x, w, 1.0 if what == "max_oracle" else 0.0)


def main(folder, reply=print):
    """Answer every line of standard input."""
    blocks = []
    for line in sys.stdin:
        question = json.loads(line)
        if question["ask"] == "hello":
            blocks = read(folder, question["split"])
            facts = {"blocks": len(blocks), "d": 2, "labels": 2, "answers": ["least_loss", "max_oracles"]}
        else:
            facts = {"answer": answer(question, blocks)}
        reply(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
