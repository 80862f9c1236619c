"""An oracle server whose lines come in pieces, break off, or come before their question has been read."""

from __future__ import annotations

import shlex

import pytest

from gapwise.stages.problems import server

LONG = {"ask": "max_oracle", "block": 0, "theta": [0.125] * 100_000}
"""A question that does not fit into a pipe."""


def asked(script: str) -> server.Server:
    """A program that answers its greeting and then does what `script` says, with lines of its own from descriptor 0."""
    return server.Server(shlex.join(["bash", "-c", f"read -r q; echo '{{}}'; {script}"]), {"ask": "hello"})


PIECES = {
    "in pieces": """read -r q; printf '{"ans'; sleep 0.1; printf 'wer":'; sleep 0.1; printf '1}'; sleep 0.1; echo""",
    "with a carriage return": r"""read -r q; printf '{"answer":1}\r\n'""",
    "with blanks": """read -r q; echo '   {"answer" : 1 }  '""",
}


@pytest.mark.parametrize("how", PIECES)
def test_line__is_read_whole_however_it_comes(how: str) -> None:
    assert asked(PIECES[how]).ask(LONG)["answer"] == 1


BROKEN = {
    """read -r q; printf '{"answer":'""": r"ended with 0 without an answer; started 3 times",
    """read -r q; printf '{"answer":1}'""": r"ended with 0 without an answer; started 3 times",
    """read -r q; printf '{"answer":'; exec 1>&-; sleep 9""": r"closed its output without an answer",
    """read -r q; echo""": r"it answered ; expected one line of JSON",
    """read -r q; printf '\\0\\0\\n'""": r"it answered .*; expected one line of JSON",
    """read -r q; echo '{"answer":1}{"answer":2}'""": r"it answered {.*2}; expected one line of JSON",
    """sleep 0.3; echo '{"answer":1}'; sleep 9""": r"it answered before it had read the question: {\"answer\":1}; expected",
}


@pytest.mark.parametrize("script", BROKEN)
def test_line__that_breaks_off_or_comes_too_early_is_told(script: str) -> None:
    with pytest.raises(server.ServerError, match=BROKEN[script]) as raised:
        asked(script).ask(LONG)
    assert "\n" not in str(raised.value)
