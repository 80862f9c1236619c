"""``gapwise completion bash``: a script for the shell that completes commands, their options and the names of runs.

The script is static: it lists run directories with the shell's own means and starts no Python. Overrides of a
configuration are completed by Hydra's own script.
"""

from __future__ import annotations

import argparse

from gapwise.pipeline.cli import Command, command, known

HYDRA = "python -m pipeline --shell-completion install={shell}"
BASH = """\
# Completion of gapwise. Use: eval "$(gapwise completion bash)", for instance in ~/.bashrc.
# Overrides of a configuration (dataset=, solver=, …): eval "$({hydra})"
_gapwise() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}} root=${{GAPWISE_RUNS:-runs}} k run
    local -a runs=()
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    for ((k = 2; k < COMP_CWORD; k++)); do
        [ "${{COMP_WORDS[k]}}" = --root ] && root=${{COMP_WORDS[k+1]}}
    done
    case "$last" in
    --root) COMPREPLY=($(compgen -d -- "$word")); return ;;
    esac
    case "${{COMP_WORDS[1]}} $word" in
{options}
    "completion "*) COMPREPLY=($(compgen -W "bash zsh" -- "$word")); return ;;
    esac
    for run in "$root"/*/manifest.json; do
        [ -e "$run" ] && run=${{run%/manifest.json}} && runs+=("${{run##*/}}")
    done
    COMPREPLY=($(compgen -W "${{runs[*]}}" -- "$word"))
}}
complete -o default -F _gapwise gapwise
"""
ZSH = """\
# Completion of gapwise. Use: eval "$(gapwise completion zsh)", for instance in ~/.zshrc, after compinit.
# Overrides of a configuration (dataset=, solver=, …): eval "$({hydra})"
autoload -Uz bashcompinit && bashcompinit
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(asked: argparse.Namespace) -> int:
    print(script(asked.shell), end="")
    return 0


def script(shell: str) -> str:
    """The script for a shell. zsh runs bash's by its own emulation, which comes with every zsh."""
    hydra = HYDRA.format(shell=shell)
    cases = [
        f'    "{name} "-*) COMPREPLY=($(compgen -W "{" ".join(options(name))}" -- "$word")); return ;;'
        for name in known()
    ]
    bash = BASH.format(hydra=hydra, commands=" ".join(known()), options="\n".join(cases))
    if shell == "bash":
        return bash
    return ZSH.format(hydra=hydra) + "".join(
        line for line in bash.splitlines(keepends=True) if not line.startswith("#")
    )


def options(name: str) -> list[str]:
    """The options of a command, sorted."""
    parser = argparse.ArgumentParser(prog=name)
    command(name).arguments(parser)
    return sorted(word for action in parser._actions for word in action.option_strings if word.startswith("--"))


COMMAND = Command("Prints a script for tab completion in bash or zsh.", arguments, run)
