"""The terms of a report: each is explained where it is used, on hover, focus or touch, and once more at the end."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from gapwise.stages.reports.html import ENGINE, macro

TERMS = {
    "block": "One training example with all its labels: a sentence, an image, a digit. The solver improves one block at a"
    " time.",
    "feature": "One number of the joint description of an input and a labelling. The model has one weight for each "
    "feature.",
    "regularization λ": "How strongly large weights are penalised. A large λ gives a simple model, a small λ one that "
    "follows the training data closely.",
    "path": "The models of all values of λ, one after the other by falling λ.",
    "breakpoint": "A λ at which the problem was solved. Between two breakpoints, the model still meets ε without another "
    "solve.",
    "max-oracle": "The search for the labelling of one block that violates the margin most. It is usually the expensive "
    "part of training.",
    "effective pass": "As many calls of the max-oracle as there are blocks: the work of looking at every training example"
    " once.",
    "duality gap": "An upper bound on how much worse a solution's objective is than the best possible one. It is "
    "computed, not estimated: 0 means optimal.",
    "ε": "The largest duality gap that is allowed.",
    "certificate": "The duality gap of a solution, together with all that is needed to recompute it. It proves how good "
    "the solution is without trusting the solver.",
    "exact": "The max-oracle finds every maximum, so the gap is exact.",
    "upper-bounded": "The max-oracle is approximate, and an upper bound on each maximum was used instead. The gap is at "
    "most what is stated.",
    "estimate": "The gap rests on an approximate max-oracle without a bound, or on old numbers. The true gap may be "
    "larger.",
    "loss": "How wrong a predicted labelling is, from 0 for a perfect one: for example the share of wrong labels.",
    "dual point": "The weights on labellings from which a certificate can be recomputed. Methods without one certify "
    "nothing.",
    "superpixel": "A small region of similar pixels that gets one label.",
}  # fmt: skip


NAMED = re.compile(rf"(?<![\w‖])({'|'.join(sorted(map(re.escape, TERMS), key=len, reverse=True))})s?(?!\w)")
"""A mention of a term in a text."""


def term(name: str, words: str | None = None) -> Markup:
    """`words`, or the term itself, with its explanation on hover and focus."""
    return macro("term")(_slug(name), name if words is None else words, TERMS[name])


def with_terms(text: str) -> Markup:
    """A text, escaped, in which the first mention of each term is explained."""
    met: set[str] = set()

    def explained(match: re.Match[str]) -> Markup | str:
        name = match[1]
        if name in met:
            return match[0]
        met.add(name)
        return term(name, match[0])

    return Markup(NAMED.sub(explained, str(escape(text))))


ENGINE.globals["term"] = term  # templates name terms, too


def glossary(page: str) -> Markup:
    """The terms that `page` uses, and their explanations, as a list."""
    rows = [(_slug(name), name, tip) for name, tip in TERMS.items()]
    return macro("glossary")([row for row in rows if f'aria-describedby="{row[0]}"' in page])


def _slug(name: str) -> str:
    return "term-" + "".join(letter if letter.isalnum() else "-" for letter in name)
