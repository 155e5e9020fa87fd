"""Programs of the shell that run other programs. Pure.

Decides which commands run another program that they name (`may_run_named_program`: no wildcard of an allow
covers that), and which run something that cannot be read from their words (`may_run_unknown_program`: no deny
can be compared with that). Options are recognised in every form that their programs accept: long ones
abbreviated, short ones combined.

Not covered: programs that interpret a language (`python`, `sed`, `make`). To allow one of them is to allow
every program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dragoman.permissions.patterns import fold
from dragoman.permissions.shell.pattern import FILES, GLOB, UNKNOWN, is_known
from dragoman.permissions.shell.script import Script, parse_script


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


STARTERS: Final = _names(
    "command builtin exec env nohup time nice timeout sudo doas xargs setsid stdbuf ionice",
)
"""Programs whose arguments are another program and its arguments, passed on as they are."""
_EVALUATORS: Final = _names(
    """eval trap alias source . enable hash bind complete compgen fc read mapfile readarray declare typeset
    readonly local coproc watch parallel script su runuser sg newgrp pkexec at batch flock entr busybox toybox
    chroot unshare nsenter strace ltrace gdb taskset chrt systemd-run start-stop-daemon rlwrap expect unbuffer
    caffeinate let setpriv setarch linux32 linux64 i386 x86_64 uname26 prlimit choom systemd-cat
    systemd-inhibit gosu su-exec fakeroot faketime valgrind perf chronic ifne dbus-run-session dbus-launch
    xvfb-run numactl cpulimit runcon capsh aa-exec bwrap firejail proot chpst tini dumb-init eatmydata
    torsocks proxychains proxychains4 ssh-agent hyperfine tmux screen
    dtach abduco sem watchexec nodemon reflex catchsegv cgexec s6-setuidgid s6-envuidgid s6-envdir setuidgid
    envuidgid envdir softlimit trickle nocache run-one run-this-one sshpass tsp daemonize logsave mispipe pee
    envchain coreutils heaptrack socat"""
)
"""Programs that run their arguments in special ways. Builtins that assign variables are among them: bash runs
the substitutions in an index, as in `read 'a[$(x)]'`."""
_TAKE_VARIABLES: Final = _names("unset wait getopts test [")
"""Builtins that take names of variables. bash also runs commands in a subscript: `unset 'a[$(x)]'`."""
_LOADER = re.compile(r"ld[\w.-]*\.so[\d.]*")
"""The dynamic loader, which runs the program it is given: `ld-linux-x86-64.so.2 /bin/rm`."""
_SETTERS: Final = _names("set export shopt")
"""Builtins that run no program, but change the meaning of later commands."""
SHELLS: Final = _names("sh bash dash zsh ksh mksh fish ash csh tcsh rbash pwsh powershell")
_LIKE_BASH: Final = _names("sh bash dash ash rbash")
"""Shells whose command texts have the same meaning as in bash."""
_ELSEWHERE: Final = _names("ssh rsh mosh slogin")
"""Programs that start a shell on another machine, which also reads commands from its input."""


class _Options(Struct, frozen=True):
    """Options with which a program runs another."""

    names: tuple[str, ...] = ()
    """Long options; an abbreviation of one is recognised, too."""
    letters: str = ""
    """Short options, anywhere in a cluster."""
    words: re.Pattern[str] | None = None
    """Prefixes of other words."""
    beginnings: tuple[str, ...] = ()
    """The beginnings of these words. Of a word with a variable in it, only the beginning is known."""

    def has(self, word: str) -> bool:
        if (
            word.startswith(UNKNOWN)
            or _may_become_options(word)
            or (self.words is not None and self.words.match(word))
            or self._may_become_word(word)
        ):
            return True
        name = word.lstrip("-").partition("=")[0].removeprefix("config.")
        # npm and others also take long options with one dash; a single letter is a short option.
        if word.startswith("--") or (word.startswith("-") and (len(name) > 1 or not is_known(name))):
            is_named = bool(name) and any(_is_short_for(name, each) for each in self.names)
            if is_named or word.startswith("--"):
                return is_named
        cluster = word[1:] if word.startswith("-") else ""
        return bool(self.letters) and any(letter in cluster for letter in (*self.letters, UNKNOWN))

    def _may_become_word(self, word: str) -> bool:
        known = _FILLED_IN.split(word, maxsplit=1)[0]
        return known not in ("", word) and any(each.startswith(known) for each in self.beginnings)


_FILLED_IN: Final = re.compile(f"[{UNKNOWN}{FILES}]")


def _may_become_options(word: str) -> bool:
    """Whether a brace expansion may contain options: `{--exec=x,y}`, `-{-exec=x,y}`, `{*,y}`."""
    if FILES not in word or "}" not in word or not word.startswith(("-", FILES)):
        return False
    return "-" in word or _FILLED_IN.search(word, 1) is not None


def _is_short_for(name: str, option: str) -> bool:
    known = _FILLED_IN.split(name, maxsplit=1)[0]
    return option.startswith(known) or (known == name and name.startswith(option))


_COPIES: Final = _Options(letters="oSFD")
_PACKAGES: Final = _Options(("script-shell", "node-options", "shell", "userconfig", "globalconfig"))
_OPTIONS: Final[dict[str, _Options]] = {
    "find": _Options(words=re.compile(r"-(?:exec|ok)(?:dir)?\Z"), beginnings=("-execdir", "-okdir")),
    "fd": _Options(("exec", "exec-batch"), "xX"),
    "tar": _Options(
        (
            "to-command",
            "checkpoint-action",
            "use-compress-program",
            "rsh-command",
            "rmt-command",
            "info-script",
            "new-volume-script",
        ),
        "IF",
    ),
    "rsync": _Options(("rsh", "rsync-path"), "eM"),
    "ssh": _Options(words=re.compile(r"-[oF]|(?i:.*(?:proxycommand|localcommand))"), beginnings=("-o", "-F")),
    "scp": _COPIES,
    "sftp": _COPIES,
    "sort": _Options(("compress-program",)),
    "split": _Options(("filter",)),
    "rg": _Options(words=re.compile(rf"--(?:pre|hostname-bin)(?:=|\Z)|--[^=]*{UNKNOWN}")),
    "zip": _Options(("unzip-command",), "T"),
    "man": _Options(("pager", "html", "config-file"), "PHC"),
    "wget": _Options(("use-askpass", "execute"), "e"),
    "printf": _Options(words=re.compile(r"-v"), beginnings=("-v",)),
    "jobs": _Options(letters="x"),
    "npm": _PACKAGES,
    "pnpm": _PACKAGES,
    "yarn": _PACKAGES,
    "go": _Options(words=re.compile(rf"--?(?:exec|toolexec|vettool)(?:=|\Z)|-[^=]*{UNKNOWN}")),
    "cargo": _Options(("config",)),
    "svn": _Options(("diff-cmd", "diff3-cmd", "editor-cmd", "config-option")),
    "hg": _Options(("config", "ssh", "remotecmd"), "e"),
    "install": _Options(("strip-program",)),
    "sdiff": _Options(("diff-program",)),
    "diff3": _Options(("diff-program",)),
    "cpio": _Options(("rsh-command",)),
    "tcpdump": _Options(letters="z"),
}
"""Programs that run others only with certain words (or, as `printf -v PATH`, change which programs run)."""

_GIT_NAMES: Final = ("exec", "upload-pack", "receive-pack", "extcmd", "open-files-in-pager", "config-env")
_GIT_WORDS: Final = re.compile(r"(?:foreach|run)\Z|.*ext::")
_GIT_BEGINNINGS: Final = ("foreach", "run", "ext::")
_GIT_COMMANDS: Final = _names(
    """config filter-branch difftool mergetool merge-index remote-ext remote-fd send-email daemon instaweb
    shell"""
)
"""git's commands that run programs from their arguments, or store commands that are run later."""
_GIT_MAKES: Final = _Options((*_GIT_NAMES, "config", "template"), "uc", _GIT_WORDS, _GIT_BEGINNINGS)
_GIT_OPTIONS: Final[dict[str, _Options]] = {
    "rebase": _Options(_GIT_NAMES, "x", _GIT_WORDS, _GIT_BEGINNINGS),
    "grep": _Options(_GIT_NAMES, "O", _GIT_WORDS, _GIT_BEGINNINGS),
    "bisect": _Options(
        _GIT_NAMES,
        "",
        re.compile(rf"{_GIT_WORDS.pattern}|(?:view|visualize)\Z"),
        (*_GIT_BEGINNINGS, "view", "visualize"),
    ),
    "clone": _GIT_MAKES,
    "init": _Options((*_GIT_NAMES, "template"), "", _GIT_WORDS, _GIT_BEGINNINGS),
}
_GIT_PLAIN: Final = _names(
    """add am apply archive bisect blame branch bundle cat-file checkout cherry cherry-pick clean commit
    describe diff fetch for-each-ref format-patch fsck gc log ls-files ls-remote ls-tree merge merge-base mv
    notes pull push range-diff reflog remote reset restore revert rev-list rev-parse rm shortlog show
    show-branch sparse-checkout stash status submodule switch tag worktree"""
)
"""git's commands without any short option that runs a program. A command that is not listed here may be an
alias."""
_GIT_FILES: Final = _names("add checkout commit diff log ls-files mv reset restore rm show status")
"""Those of them that take files, and have no option at all that runs a program."""
_GIT_ANY: Final = _Options(_GIT_NAMES, "", _GIT_WORDS, _GIT_BEGINNINGS)
_GIT_ALIAS: Final = _Options((*_GIT_NAMES, "config", "template"), "xuOc", _GIT_WORDS, _GIT_BEGINNINGS)
_GIT_TAKES_A_WORD: Final = (
    "-C",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--attr-source",
    "--super-prefix",
    "--shallow-file",
    "-c",
    "--config-env",
)

_GIT_SETTINGS: Final = ("-c", "--config-env", "--exec-path")
"""Options before git's own command that name programs to run, among other things: `git -c core.pager=…`."""

_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
PROGRAM = re.compile(r"[A-Za-z./][\w./+-]*")
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\+?=.*)?", re.DOTALL | re.ASCII)
_HARMLESS_NAME = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|CI|DEBUG|NODE_ENV|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|[A-Z]"
    r"|(?!(?:p?npm|yarn|bun|bundle|gem)_|(?:path|fpath|cdpath|module_path|prompt)\Z)[a-z_][a-z0-9_]*"
)
"""Variables that never make a program run another. Names in lower case are the command's own variables,
except those that package managers read (`npm_config_script_shell`) and those that zsh ties to `PATH` and
similar variables."""
_ASSIGNING: Final = _names("export read getopts wait")
"""Builtins whose words include names of variables that they change."""
_CHANGES_WORDS = re.compile(r"[-+][A-Za-z]*k.*|keyword")
"""The option with which `set` makes assignments after a program part of its environment."""
_READ = re.compile(r"-[a-z]+|\w+")
_NESTED: Final = 3
"""How deep programs that start programs are followed."""
_EXECUTED: Final = 16
"""How many programs of one `find` are checked."""


def base(program: str) -> str:
    return fold(re.split(r"[/\\]", program)[-1]).removesuffix(".exe")


def undashed(words: Sequence[str]) -> Sequence[str]:
    """The command with git's own programs written as git's commands: `git-push x` is `git push x`."""
    program, dash, command = base(words[0]).partition("git-") if words else ("", "", "")
    return ("git", command, *words[1:]) if dash and not program and command else words


def is_duration(word: str) -> bool:
    return _DURATION.fullmatch(word) is not None


def started(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command that a plain starter without options starts: `nohup make` is `make`."""
    if len(words) < 2 or words[0] not in ("command", "nohup", "time", "nice", "env", "timeout", "builtin"):
        return ()
    inner = words[1:]
    if words[0] == "timeout":
        inner = words[2:] if is_duration(words[1]) else ()
    return inner if inner and PROGRAM.fullmatch(inner[0]) else ()


def may_run_named_program(words: Sequence[str]) -> bool:
    """Whether a program may run another that its arguments name."""
    if not words:
        return False
    words = undashed(words)
    name = base(words[0])
    if name in STARTERS or name in _EVALUATORS or name in _SETTERS or _LOADER.fullmatch(name):
        return True
    if name in SHELLS:
        return any(word[:1] in ("-", "+", "", UNKNOWN, FILES) for word in words[1:]) or len(words) == 1
    if name in _TAKE_VARIABLES:
        return _may_have_subscript(words)
    if name == "git":
        return _git_may_run_named_program(words)
    if name == "tar" and len(words) > 1 and not words[1].startswith("-"):
        words = (words[0], f"-{words[1]}", *words[2:])  # its first word contains options, also without a dash
    options = _OPTIONS.get(name)
    return options is not None and any(map(options.has, words[1:]))


def _may_have_subscript(words: Sequence[str]) -> bool:
    """Whether a word may name an element of an array. An unknown word may expand to `-v` and such a name, in
    any place."""
    return any("[" in word or not is_known(word) for word in words[1:])


def git_subcommand(words: Sequence[str]) -> int:
    """The index of git's subcommand after the options of git itself; the number of words if there is none."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if git_takes_a_word(words[at]) else 1
    return min(at, len(words))


def git_takes_a_word(option: str) -> bool:
    """Whether an option before git's subcommand takes the next word."""
    return option in _GIT_TAKES_A_WORD


def _git_may_run_named_program(words: Sequence[str]) -> bool:
    at = git_subcommand(words)
    if any(word.startswith(_GIT_SETTINGS) for word in words[1:at]):
        return True
    command = words[at] if at < len(words) else ""
    if command in _GIT_COMMANDS or not is_known(command):
        return True
    options = _GIT_OPTIONS.get(command, _GIT_ANY if command in _GIT_PLAIN or not command else _GIT_ALIAS)
    if command in _GIT_FILES:
        words = [word for word in words if not word.startswith(GLOB)]
    return any(map(options.has, words[1:]))


def may_run_unknown_program(words: tuple[str, ...], depth: int = 0) -> bool:
    """Whether the command runs something that cannot be read from its words: a file, its input, or a text in
    another language. Returns true in doubt."""
    if not words or depth > _NESTED:
        return bool(words)
    name = base(words[0])
    if name in SHELLS:
        inside = _text_of(words)
        return inside is None or _script_may_run_unknown_program(inside, depth + 1)
    if name in _ELSEWHERE:
        return True
    if _builtin_may_change_programs(words):
        return True
    if name in _SETTERS or (name == "read" and all(map(_READ.fullmatch, words[1:]))):
        return False
    if name in STARTERS:
        inner = started(words) or _plainly_started(words)
        if not inner or (name == "xargs" and _depends_on_options(inner[0])):
            return True
        return may_run_unknown_program(inner, depth + 1)
    if name == "find" and depth == 0:
        return _find_may_run_unknown_program(words)
    return may_run_named_program(words)


def may_change_programs(assignments: Sequence[str]) -> bool:
    """Whether an assignment may change which programs run: `PATH=…`, `BASH_ENV=…`, `GIT_SSH=…`."""
    return not all(map(_is_ordinary, assignments))


def _is_ordinary(assignment: str) -> bool:
    match = _ASSIGNED.fullmatch(assignment)
    return match is not None and _HARMLESS_NAME.fullmatch(match["name"]) is not None


def _builtin_may_change_programs(words: Sequence[str]) -> bool:
    """Whether a builtin changes variables, or the way commands are read, so that later commands may run
    something else."""
    name, arguments = base(words[0]), words[1:]
    if name == "set":
        return any(not is_known(word) or _CHANGES_WORDS.fullmatch(word) for word in arguments)
    if name == "unset":
        return not all(map(is_known, arguments)) or "PATH" in arguments
    if name not in _ASSIGNING:
        return False
    named = [word for word in arguments if not word.startswith("-")]
    if name == "wait":
        named = [word for word in named if not word.isdecimal() and not word.startswith("%")]
    return may_change_programs(named)


def _depends_on_options(program: str) -> bool:
    """Whether the command may run others with words that are appended later: `echo -exec rm x | xargs
    find`."""
    return base(program) == "git" or base(program) in _OPTIONS


def _plainly_started(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command that a starter starts, if the program follows it directly: `sudo make`, `xargs grep x`."""
    is_plain = words[0] != "timeout" and len(words) > 1 and PROGRAM.fullmatch(words[1])
    return words[1:] if is_plain else ()


def _find_may_run_unknown_program(words: tuple[str, ...]) -> bool:
    options = _OPTIONS["find"]
    places = [at for at, word in enumerate(words) if at and options.has(word)]
    if len(places) > _EXECUTED:
        return True
    executed = [words[at + 1 :] for at in places]
    return any(
        not each or not PROGRAM.fullmatch(each[0]) or may_run_unknown_program(_until_semicolon(each), 1)
        for each in executed
    )


def _until_semicolon(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[: words.index(";")] if ";" in words else words


def _text_of(words: tuple[str, ...]) -> Script | None:
    """The command text in the arguments of a shell: `sh -c 'git status'`."""
    if len(words) < 3 or base(words[0]) not in _LIKE_BASH or not re.fullmatch(r"-[a-z]*c", words[1]):
        return None
    text = words[2:][0]
    return parse_script(text) if is_known(text) and not text.startswith("-") else None


def _script_may_run_unknown_program(script: Script, depth: int) -> bool:
    """Whether the text of a shell may run something that cannot be read from it. An unknown word counts as
    that, because it may be one of the shell's other arguments: `sh -c '"$@"' x rm y`."""
    return script.unclear is not None or any(
        not all(map(is_known, each.all_words))
        or may_change_programs(each.assignments)
        or may_run_unknown_program(each.words, depth)
        for each in script.commands
    )
