"""What verify found, in words."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.problems.certainty import ESTIMATE, UPPER_BOUNDED, promise
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term
from gapwise.stages.solver.options import ENDED


def verdict(run: ReportedRun) -> Markup:
    """One or two sentences on what is proven about the run, and what is not."""
    found, attrs = run.verified, run.attrs
    if not found:
        return Markup("Nothing has been verified yet.")
    if found.get("broken") and attrs.get("certified"):
        text = Markup("<strong>The {} does not hold:</strong> {}.")
        return text.format(term("certificate"), "; ".join(str(line) for line in found["broken"][:3]))
    if not found.get("dual_point", True):
        return Markup("The method has no {}, so nothing is certified.").format(term("dual point"))
    if run.kind == "heuristic":
        return Markup("This is a heuristic path: nothing is certified between its {}s.").format(term("breakpoint"))
    if found.get("certainty") == ESTIMATE:
        text = Markup("The {} is approximate and has no bound, so every gap is an {} and nothing is certified{}.")
        declared = f"; {promise(found['accuracy'])}" if found.get("accuracy") else ""
        return text.format(term("max-oracle"), term("estimate"), declared)
    if not found.get("certified"):
        return not_to_the_end(run)
    return holds(run)


def not_to_the_end(run: ReportedRun) -> Markup:
    """A run that a limit ended."""
    status = str(run.attrs.get("status"))
    why = "" if status in ENDED else f" The run ended with {status} before the tolerance was reached."
    text = Markup("The {}s were recomputed, but they do not reach {} everywhere.{}")
    return text.format(term("certificate"), term("ε"), why)


def holds(run: ReportedRun) -> Markup:
    """A run all of whose certificates hold."""
    found, attrs = run.verified, run.attrs
    relative = " of the objective" if attrs.get("relative") else ""
    text = Markup(
        "Separate code rebuilt every solution and recomputed its {}: all of them hold{}. The largest {} is {}{}, and {} {} "
        "was allowed."
    )
    many = Markup(text).format(
        term("certificate"), _reach(run), term("duality gap"), number(found.get("max_gap")), relative, term("ε"),
        number(found.get("epsilon")),
    )  # fmt: skip
    if found.get("certainty") != UPPER_BOUNDED:
        return many
    more = Markup(" The {} is approximate, so these gaps are {}; it is proven optimal on {} of the blocks.")
    return many + more.format(term("max-oracle"), term("upper-bounded"), number(found.get("proven"), ".1%"))


def _reach(run: ReportedRun) -> str:
    """The lambdas for which a path is certified, in words; empty if they were given."""
    low = run.verified.get("lambda_low")
    if run.attrs.get("rule") == "given" or low is None:
        return ""
    return ", for every λ > 0" if low == 0.0 else f", for every λ ≥ {number(low)}"
