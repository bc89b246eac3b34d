"""Scripts that complete the command line of ``waywiser`` in bash, zsh and fish."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

from waywiser.cli.completion_words import SUFFIX, OptionWords, Values, VerbWords

_BASH_HEAD = """\
# Completes the words of waywiser in bash: source <(waywiser completion bash)

_waywiser_words() {
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_waywiser_pattern() {
    local last=${cur#[\\"\\']} before=""
    if [[ $last == *" "* ]]; then
        before="${last% *} "
        last=${last##* }
    fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "$last")
}

_waywiser_files() {
    local name=${cur#[\\"\\']}
    compopt -o filenames 2> /dev/null
    if (($# == 0)); then
        mapfile -t COMPREPLY < <(compgen -f -- "$name")
        return
    fi
    mapfile -t COMPREPLY < <(
        compgen -d -- "$name"
        compgen -f -X "!*.$1" -- "$name"
    )
}

_waywiser_folders() {
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "${cur#[\\"\\']}")
}

_waywiser() {
    # Bash splits words at ':', '=' and '@' too, and replaces only the last piece.
    local line=$COMP_LINE piece blanks i
    local -a words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        blanks=${line%%[![:blank:]]*}
        line=${line#"$blanks"}
        line=${line#"$piece"}
        if [[ $blanks || ! ${words[*]} || ! $piece ]]; then
            words+=("$piece")
        else
            words[${#words[@]} - 1]+=$piece
        fi
    done
    local cur=${words[${#words[@]} - 1]} previous=${words[${#words[@]} - 2]} verb="" kept
    [[ ${piece//[:=]/} ]] || piece=""
    kept=${cur%"$piece"}
    if [[ $cur == --*=* ]]; then
        previous=${cur%%=*}
        cur=${cur#*=}
        kept=${kept#*=}
    fi
    for piece in "${words[@]:1:${#words[@]} - 2}"; do
        if [[ $piece != -* ]]; then
            verb=$piece
            break
        fi
    done
    COMPREPLY=()
    _waywiser_complete
    if [[ $kept ]]; then
        for i in "${!COMPREPLY[@]}"; do
            if [[ -d ${COMPREPLY[i]/#~\\//$HOME/} ]]; then
                COMPREPLY[i]+=/
                compopt -o nospace 2> /dev/null
            fi
            COMPREPLY[i]=${COMPREPLY[i]#"$kept"}
        done
    fi
}

_waywiser_complete() {
"""

_ZSH_HEAD = """\
#compdef waywiser
# Completes the words of waywiser in zsh: source <(waywiser completion zsh), after compinit

_waywiser_words() {
    compadd -- "$@"
}

_waywiser_pattern() {
    compset -P '* '
    compadd -- "$@"
}

_waywiser_files() {
    if (($# == 0)); then
        _files
    else
        _files -g "*.$1"
    fi
}

_waywiser_folders() {
    _files -/
}

_waywiser() {
    local verb="" previous=${words[CURRENT - 1]} i
    local -a options
    for ((i = 2; i < CURRENT; i++)); do
        if [[ ${words[i]} != -* ]]; then
            verb=${words[i]}
            break
        fi
    done
    if [[ $PREFIX == --*=* ]]; then
        previous=${PREFIX%%=*}
        compset -P '*='
    fi
"""

_ZSH_TAIL = """\
}

if [[ ${funcstack[1]} == _waywiser ]]; then
    _waywiser "$@"
else
    compdef _waywiser waywiser
fi
"""

_FISH_HEAD = """\
# Completes the words of waywiser in fish: waywiser completion fish | source

function __waywiser_pattern
    set -l token (string replace -r '^["\\']' '' -- (commandline -ct))
    set -l before (string match -r '^.* ' -- $token)
    printf '%s\\n' "$before"$argv
end

function __waywiser_profiles
    set -l name '^[^\\t]*(?:\\.wwp|/)(?:\\t.*)?$'
    __fish_complete_path (commandline -ct) | string match -r $name
end

complete -c waywiser -f
"""


def bash_script(verbs: Sequence[VerbWords]) -> str:
    """The script for bash 4.4 and later; it does not need the package bash-completion."""
    cases = "\n".join(_cases(verbs, _bash_options))
    return f"{_BASH_HEAD}{cases}\n}}\n\ncomplete -F _waywiser waywiser\n"


def zsh_script(verbs: Sequence[VerbWords]) -> str:
    """The script for zsh: for ``source``, or as ``_waywiser`` in a folder of ``fpath``."""
    cases = "\n".join(_cases(verbs, _zsh_options))
    return f"{_ZSH_HEAD}{cases}\n{_ZSH_TAIL}"


def _cases(
    verbs: Sequence[VerbWords], options_of: Callable[[VerbWords], Iterator[str]]
) -> Iterator[str]:
    """What follows an option, then the options, then the arguments: bash and zsh read the same."""
    yield '    case "$verb $previous" in'
    for verb in verbs:
        for option in verb.options:
            if option.values is not None:
                names = " | ".join(f'"{verb.name} {name}"' for name in option.names)
                yield f"        {names})"
                yield f"            {_call(option.values)}"
                yield "            return"
                yield "            ;;"
    yield "    esac"
    yield '    case "$verb" in'
    for verb in verbs:
        yield f'        "{verb.name}")'
        yield from (f"            {line}" for line in options_of(verb))
        yield f"            {_call(verb.arguments)}"
        yield "            ;;"
    yield "    esac"


def _call(values: Values) -> str:
    """The call of a function of the head."""
    match values.kind:
        case "nothing":
            return ":"
        case "words" | "pattern":
            return shlex.join([f"_waywiser_{values.kind}", *values.words])
        case "profiles":
            return shlex.join(["_waywiser_files", SUFFIX])
    return f"_waywiser_{values.kind}"


def _bash_options(verb: VerbWords) -> Iterator[str]:
    yield "if [[ $cur == -* ]]; then"
    yield f"    _waywiser_words {' '.join(name for o in verb.options for name in o.names)}"
    yield "    return"
    yield "fi"


def _zsh_options(verb: VerbWords) -> Iterator[str]:
    yield "if [[ $PREFIX == -* ]]; then"
    yield "    options=("
    for option in verb.options:
        for name in option.names:
            yield f"        {shlex.quote(f'{name}:{_first_sentence(option)}')}"
    yield "    )"
    yield "    _describe -o option options"
    yield "    return"
    yield "fi"


def _first_sentence(option: OptionWords) -> str:
    """Its first words, which fit beside the name."""
    return option.does.partition(": ")[0].partition("; ")[0].partition(". ")[0].rstrip(".")


def fish_script(verbs: Sequence[VerbWords]) -> str:
    """The script for fish 3 and later."""
    return _FISH_HEAD + "\n".join(_fish_lines(verbs)) + "\n"


def _fish_lines(verbs: Sequence[VerbWords]) -> Iterator[str]:
    for verb in verbs:
        given = f"__fish_seen_subcommand_from {verb.name}" if verb.name else "__fish_use_subcommand"
        start = f"complete -c waywiser -n {_fish_quoted(given)}"
        if verb.name:
            about = f"-a {verb.name} -d {_fish_quoted(verb.does)}"
            yield f"complete -c waywiser -n __fish_use_subcommand {about}"
            if verb.arguments.kind != "nothing":
                yield f"{start} {_fish_values(verb.arguments)}"
        for option in verb.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            values = "" if option.values is None else f" -r {_fish_values(option.values)}"
            yield f"{start} {names}{values} -d {_fish_quoted(_first_sentence(option))}"


def _fish_values(values: Values) -> str:
    match values.kind:
        case "nothing":
            return "-f"
        case "words":
            return f"-f -a {_fish_quoted(' '.join(values.words))}"
        case "pattern":
            words = " ".join(values.words)
            return f"-f -a {_fish_quoted(f'(__waywiser_pattern {words})')}"
        case "profiles":
            return "-f -a '(__waywiser_profiles)'"
        case "folders":
            return "-f -a '(__fish_complete_directories (commandline -ct))'"
    return "-F"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[Sequence[VerbWords]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
