"""The verdict on a run in the report's words, with its terms marked."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.problems.certainty import promise
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term
from gapwise.stages.solver.options import ENDED
from gapwise.stages.verdict import Doubt, Reach, Verdict


def verdict(run: ReportedRun) -> Markup:
    """One or two sentences on what is proven about the run, and what is not."""
    return in_words(run.verdict) if run.verified else Markup("Nothing has been verified yet.")


def in_words(found: Verdict) -> Markup:
    """The sentences of `verdict`."""
    match found.doubt:
        case Doubt.BROKEN:
            text = Markup("<strong>The {} does not hold:</strong> {}.")
            return text.format(term("certificate"), "; ".join(found.broken))
        case Doubt.NO_DUAL_POINT:
            return Markup("The method has no {}, so nothing is certified.").format(term("dual point"))
        case Doubt.HEURISTIC:
            return Markup("This is a heuristic path: nothing is certified between its {}s.").format(term("breakpoint"))
        case Doubt.ESTIMATE:
            text = Markup("The {} is approximate and has no bound, so every gap is an {} and nothing is certified{}.")
            declared = f"; {promise(found.accuracy)}" if found.accuracy else ""
            return text.format(term("max-oracle"), term("estimate"), declared)
        case Doubt.UNFINISHED:
            return not_to_the_end(found)
    return holds(found)


def not_to_the_end(found: Verdict) -> Markup:
    """A run that a limit ended."""
    why = "" if found.status in ENDED else f" The run ended with {found.status} before the tolerance was reached."
    text = Markup("The {}s were recomputed, but they do not reach {} everywhere.{}")
    return text.format(term("certificate"), term("ε"), why)


def holds(found: Verdict) -> Markup:
    """A run all of whose certificates hold."""
    of_primal = " of the objective" if found.relative and found.of_path else ""
    of_dual = " of the dual objective" if found.relative and found.reach is Reach.SOLVED else ""
    text = Markup(
        "Separate code rebuilt every solution and recomputed its {}: all of them hold{}. The largest {} is {}{}, and {} {}"
        "{} was allowed."
    )
    many = text.format(
        term("certificate"), f", {found.lambdas}" if found.of_path else "", term("duality gap"), number(found.largest_gap),
        of_primal, term("ε"), number(found.allowed), of_dual,
    )  # fmt: skip
    if found.proven is None:
        return many
    more = Markup(" The {} is approximate, so these gaps are {}; it is proven optimal on {} of the blocks.")
    return many + more.format(term("max-oracle"), term("upper-bounded"), number(found.proven, ".1%"))
