"""IBM models by nltk, trained on parallel text in both directions; hand-made links choose how the two are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapwise.pipeline.practice.contest import Asked, Contestant, Tuned, pickled
from gapwise.stages.datasets.alignment.tokens import normal

SENTENCES, ITERATIONS = 50_000, 5
"""Pairs of the parallel text, at equal steps, and passes of EM."""
WAYS = ("intersection", "union", "grow-diag-final-and")
Link = tuple[int, int]
Pair = tuple[Sequence[str], Sequence[str]]


def _normal(pair: Pair) -> tuple[list[str], list[str]]:
    return [normal(word) for word in pair[0]], [normal(word) for word in pair[1]]


def _joined(way: str, e: int, f: int, forward: set[Link], back: set[Link]) -> set[Link]:
    from nltk.translate.gdfa import grow_diag_final_and

    if way == WAYS[2]:
        texts = [" ".join(f"{j}-{k}" for j, k in sorted(links)) for links in (forward, back)]
        return set(grow_diag_final_and(e, f, *texts))
    return forward & back if way == WAYS[0] else forward | back


def _model_1(asked: Asked) -> Tuned:
    """Both directions are trained once: EM looks at no links, so held-out pairs need no other model."""
    from nltk.translate import AlignedSent, IBMModel1

    train, test, text = asked.data.train, asked.data.test, asked.data.text
    pairs = [_normal(pair) for pair in [*text[:: max(1, len(text) // SENTENCES)], *train.x, *test.x]]
    to_french = IBMModel1([AlignedSent(f, e) for e, f in pairs], ITERATIONS)
    to_english = IBMModel1([AlignedSent(e, f) for e, f in pairs], ITERATIONS)

    def aligned(model: Any, target: list[str], source: list[str]) -> list[Link]:
        """(target, source) of every target word that has a source word."""
        sentence = AlignedSent(target, source)
        model.align(sentence)
        return [(t, s) for t, s in sentence.alignment if s is not None]

    def predict(x: Sequence[Pair], way: str) -> list[set[Link]]:
        links = []
        for e, f in map(_normal, x):
            forward = {(j, k) for k, j in aligned(to_french, f, e)}
            links.append(_joined(way, len(e), len(f), forward, set(aligned(to_english, e, f))))
        return links  # fmt: skip

    lead = asked.judge.figures[0]
    losses = [lead.loss(asked.judge.table(train, predict(train.x, way)).sum(axis=0)) for way in WAYS]
    best = WAYS[losses.index(min(losses))]
    tables = [{word: dict(row) for word, row in model.translation_table.items()} for model in (to_french, to_english)]
    return Tuned(lambda x: predict(x, best), best, pickled(tables), f"{len(pairs):,} pairs of sentences")


IBM_1 = Contestant("IBM Model 1 (nltk), both directions", _model_1, ("nltk.translate",))
