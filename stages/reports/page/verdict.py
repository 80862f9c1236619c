"""The verdict on a run in the report's words, with its terms marked."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.certify.verdict import Doubt, Reach, Verdict
from gapwise.stages.problems.certainty import promise
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term
from gapwise.stages.solver.options import ENDED


def verdict(run: ReportedRun) -> Markup:
    """What is proven about the run and what is not, in a few sentences."""
    return in_words(run.verdict) if run.verified else Markup("Nothing has been verified yet.")


def in_words(verdict: Verdict) -> Markup:
    """The sentences of `verdict`."""
    if not verdict.trivial:
        return _in_words(verdict)
    where = "" if verdict.solved == 1 else f" At {verdict.loose} of {verdict.solved} λ's"
    loose = Markup(
        "{} the {} is no smaller than the objective, so this {} says no more than the trivial bound 0 on it."
    )
    subject = where or " Here"
    return _in_words(verdict) + loose.format(subject, term("duality gap"), term("certificate"))


def _in_words(verdict: Verdict) -> Markup:
    match verdict.doubt:
        case Doubt.BROKEN:
            text = Markup("<strong>The {} does not hold:</strong> {}.")
            return text.format(term("certificate"), "; ".join(verdict.broken))
        case Doubt.NO_DUAL_POINT:
            return Markup("The method has no {}, so nothing is certified.").format(term("dual point"))
        case Doubt.HEURISTIC:
            return Markup("This is a heuristic path: nothing is certified between its {}s.").format(term("breakpoint"))
        case Doubt.ESTIMATE:
            text = Markup("The {} is approximate and has no bound, so every gap is an {} and nothing is certified{}.")
            declared = f"; {promise(verdict.accuracy)}" if verdict.accuracy else ""
            return text.format(term("max-oracle"), term("estimate"), declared)
        case Doubt.UNFINISHED:
            return not_to_the_end(verdict)
    return holds(verdict)


def not_to_the_end(verdict: Verdict) -> Markup:
    """A run that a limit ended."""
    why = "" if verdict.status in ENDED else f" The run ended with {verdict.status} before the tolerance was reached."
    text = Markup("The {}s were recomputed, but they do not reach {} everywhere.{}")
    return text.format(term("certificate"), term("ε"), why)


def holds(verdict: Verdict) -> Markup:
    """A run all of whose certificates hold."""
    of_primal = " of the objective" if verdict.relative and verdict.of_path else ""
    of_dual = " of the dual objective" if verdict.relative and verdict.reach is Reach.SOLVED else ""
    text = Markup(
        "Separate code rebuilt every solution and recomputed its {}: all of them hold{}. The largest {} is {}{}, and {} {}"
        "{} was allowed."
    )
    many = text.format(
        term("certificate"), f", {verdict.lambdas}{verdict.below}" if verdict.of_path else "", term("duality gap"),
        number(verdict.largest_gap), of_primal, term("ε"), number(verdict.allowed), of_dual,
    )  # fmt: skip
    if verdict.proven is None:
        return many
    more = Markup(" The {} is approximate, so these gaps are {}; it is proven optimal on {} of the blocks.")
    return many + more.format(term("max-oracle"), term("upper-bounded"), number(verdict.proven, ".1%"))
