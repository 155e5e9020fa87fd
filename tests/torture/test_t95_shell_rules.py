"""T95: Options before a subcommand, subscripts that bash executes, and quotes that dash parses
differently."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import Call, Rulebook


def decided(command: str, rules: PermissionRules, mode: PermissionMode = "default") -> str:
    call = Call(tool="Bash", arguments={"command": command}, command=command)
    return decide(call, Rulebook.of([("user", "settings", rules)]).rules, mode).behaviour


PUSHES = [
    "git -C . push",
    "git -C . -C .. push origin main",
    "git --no-pager push",
    "git -p push",
    "git --git-dir=.git push",
    "git --git-dir .git --work-tree . push",
    "git --namespace x push",
    "git --bare --literal-pathspecs push origin",
    "git -c user.name=x push",
    "git --config-env=a.b=C push",
    "sudo git -C . push",
    "env A=b git --no-pager push",
    "sh -c 'git -C . push'",
    "/usr/bin/git -C . push",
    "ls && git --no-pager push",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", PUSHES)
@pytest.mark.parametrize("behaviour", ["ask", "deny"])
def test_options_before_a_subcommand_do_not_hide_it_from_a_rule(command: str, behaviour: str):
    rules = PermissionRules(allow=("Bash",), **{behaviour: ("Bash(git push *)",)})
    assert decided(command, rules) == behaviour
    assert decided(command, rules, "bypassPermissions") == behaviour


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("docker rm *", "docker --context prod rm web"),
        ("docker rm *", "docker --context=prod rm web"),
        ("kubectl delete *", "kubectl -n prod delete pod web"),
        ("kubectl delete pod *", "kubectl delete -n prod pod web"),
        ("npm publish *", "npm --prefix lib publish"),
        ("npm run deploy", "npm run --silent deploy"),
        ("systemctl stop *", "systemctl --user stop web"),
        ("gh pr merge *", "gh -R me/it pr merge 3"),
        ("npm run deploy", "npm --prefix x run --silent deploy"),
        ("npm run deploy", "npm run deploy --silent --prefix x"),
        ("kubectl delete pod *", "kubectl -n prod delete --wait pod x"),
        ("docker compose down *", "docker compose -f y --dry-run down -v"),
        ("gh repo delete *", "gh -R a/b repo --yes delete x"),
        ("aws s3 rm *", "aws --profile p --region r s3 --quiet rm s3://x"),
        ("git push origin *", "git push -o ci.skip origin main"),
        ("git push origin *", "git -C . push -v -o ci.skip --no-verify origin main"),
        ("git push *", "git --shallow-file x push"),
        ("git push --force *", "git push -v --force x"),
        ("git push*", "git -C . push origin main"),
        ("git p*h origin ma*", "sudo git --no-pager push -o x -v origin main"),
        ("kubectl * pod *", "kubectl delete --wait pod x"),
    ],
)
def test_options_are_skipped_for_every_program(pattern: str, command: str):
    assert decided(command, PermissionRules(allow=("Bash",), deny=(f"Bash({pattern})",))) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git log push",
        "git -C . log push",
        "git --no-pager log push",
        "git commit -m push",
        "git status -s",
        "git -C . status -s",
        "git --no-pager log -n 3 push",
    ],
)
def test_a_word_that_is_not_a_subcommand_is_not_treated_as_one(command: str):
    rules = PermissionRules(allow=("Bash",), deny=("Bash(git push *)", "Bash(git status)"))
    assert decided(command, rules) == "allow"


@pytest.mark.parametrize(
    ("command", "behaviour"),
    [
        ("task --prefix x run --silent $X", "ask"),
        ("task --prefix $X run deploy", "deny"),
        ("task --prefix $X test", "ask"),
        ("task --silent run x$X", "allow"),
        ("task --silent=1 test $X", "allow"),
    ],
)
def test_unknown_words_are_compared_after_options(command: str, behaviour: str):
    rules = PermissionRules(allow=("Bash",), deny=("Bash(task run deploy)",))
    assert decided(command, rules) == behaviour


SUBSCRIPTS = [
    "test -v 'a[$(touch ran)]'",
    'test -v "a[\\$(touch ran)]"',
    "/usr/bin/test -v 'a[$(touch ran)]'",
    "[ -v 'a[$(touch ran)]' ]",
    "let 'a[$(touch ran)]'",
    "let x='a[$(touch ran)]'",
    "unset 'a[$(touch ran)]'",
    "unset a['$(touch ran)']",
    "test ! -v 'a[$(touch ran)]'",
    "test -n x -a -v 'a[$(touch ran)]'",
    "wait -p 'a[$(touch ran)]'",
    "jobs -x touch ran",
    "export 'a[$(touch ran)]=1'",
    "printf -v 'a[$(touch ran)]' x",
]
ALLOW_BUILTINS = PermissionRules(
    allow=tuple(
        f"Bash({name} *)" for name in ("test", "[", "let", "unset", "wait", "jobs", "export", "printf")
    )
)


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", SUBSCRIPTS)
def test_a_subscript_is_matched_by_no_wildcard(command: str):
    assert decided(command, ALLOW_BUILTINS) == "ask"
    assert decided(command, PermissionRules(allow=("Bash",), deny=("Bash(touch *)",))) in ("ask", "deny")


def test_bash_executes_the_content_of_subscripts(tmp_path: Path):
    ran = [text for text in SUBSCRIPTS if _runs(text, tmp_path)]
    assert {"test", "let", "unset", "[", "jobs", "printf"} <= {text.split()[0] for text in ran}


def _runs(command: str, folder: Path) -> bool:
    marker = folder / "ran"
    marker.unlink(missing_ok=True)
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run(
        [bash, "-c", f"a=(1 2); {command}"], cwd=folder, capture_output=True, timeout=20, check=False
    )
    return marker.exists()


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    "command", ["test ! $(cat f)", "test x = x -a $(cat f)", 'test -n "$X"', "test -f *", "test x $X"]
)
def test_a_test_command_with_unknown_words_is_asked_about(command: str):
    rules = PermissionRules(allow=(*ALLOW_BUILTINS.allow, "Bash(cat *)"))
    assert decided(command, rules) == "ask"


def test_bash_executes_a_subscript_produced_by_a_substitution(tmp_path: Path):
    (tmp_path / "f").write_text("-v a[$(touch${IFS}ran)]")
    assert _runs("test ! $(cat f)", tmp_path)
    assert _runs("test x = x -a $(cat f)", tmp_path)


@pytest.mark.parametrize("command", ["test -f a.txt", "unset A B", "test -v HOME", "wait", "jobs -l"])
def test_builtins_without_subscripts_are_allowed_as_before(command: str):
    rules = PermissionRules(allow=(*ALLOW_BUILTINS.allow, "Bash(wait)"))
    assert decided(command, rules) == "allow"


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", [r"echo $'a\'; id #'", r"echo x$'\'' ; echo $'; id #'", r"echo $'\x61'"])
def test_text_that_bash_and_dash_parse_differently_is_asked_about(command: str):
    assert decided(command, PermissionRules(allow=("Bash(echo *)",))) == "ask"
    assert decided(command, PermissionRules(allow=("Bash",), deny=("Bash(rm *)",))) == "ask"


ASSIGNMENTS = [
    "BASH_ENV=./evil bash -c true",
    "GIT_EXTERNAL_DIFF='rm -f victim; :' git diff",
    "export BASH_ENV=./evil; bash -c true",
    "export LANG=C BASH_ENV=./evil; bash -c true",
    "command export BASH_ENV=./evil; bash -c true",
    "declare -x BASH_ENV=./evil; bash -c true",
    "readonly PATH=.; ls",
    "GIT_SSH_COMMAND='rm -rf x' git fetch",
    "PATH=. ls",
    "PATH=.; ls",
    "PATH+=:. ls",
    "LANG=C PATH=. ls",
    "unset PATH; ls",
    "read -r PATH <<< .; ls",
    "set -- -a; getopts a PATH; ls",
    "LD_PRELOAD=./evil.so ls",
    "npm_config_script_shell=./evil npm test",
    "env GIT_PAGER=./evil git log",
    "sh -c 'PATH=. ls'",
    "sh -c 'GIT_PAGER=./evil git log'",
    "BASH_CMDS[ls]=./evil; ls",
    "set -k; git diff GIT_EXTERNAL_DIFF=./evil",
    "set -o keyword; git diff GIT_EXTERNAL_DIFF=./evil",
    "export $X; bash -c true",
]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("command", ASSIGNMENTS)
@pytest.mark.parametrize("behaviour", ["ask", "deny"])
def test_assignments_that_change_which_program_runs_are_asked_about(command: str, behaviour: str):
    rules = PermissionRules(allow=("Bash",), **{behaviour: ("Bash(rm *)",)})
    assert decided(command, rules) == "ask"
    rules = PermissionRules(**{behaviour: ("Bash(rm *)",)})
    assert decided(command, rules, "bypassPermissions") == "ask"
    assert decided(command, PermissionRules(), "bypassPermissions") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "x=1; echo $x",
        "name=$(git describe) && echo $name",
        "LANG=C sort x",
        "LC_ALL=C.UTF-8 TZ=UTC date",
        "CI=1 NODE_ENV=test npm test",
        "export CI=1; make",
        "export CI; make",
        "set -euo pipefail; make",
        "unset A x",
        "while read -r line; do echo x; done",
        "sh -c 'LANG=C make'",
    ],
)
def test_other_assignments_are_not_asked_about(command: str):
    assert decided(command, PermissionRules(allow=("Bash",), deny=("Bash(rm *)",))) == "allow"


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    "command",
    [
        "sort --compress-program=./x a",
        "sort --compress-prog ./x a",
        "split --filter='id' a",
        "split --filt id a",
        "scp -o ProxyCommand=id a b:",
        "scp -qoProxyCommand=id a b:",
        "scp -S x a b:",
        "scp -F x a b:",
        "sftp -o ProxyCommand=id b",
        "sftp -D ./x",
        "ssh -F x b",
        "rg --pre x y",
        "rg --pre=x y",
        "rg --hostname-bin x y",
        "zip -TT x a.zip b",
        "zip -qTT x a.zip b",
        "zip --unzip-command x -T a.zip b",
        "man -P x ls",
        "man --pager=x ls",
        "wget --use-askpass=./x http://a",
        "sort $X",
    ],
)
def test_options_that_name_a_program_are_matched_by_no_wildcard(command: str):
    assert decided(command, PermissionRules(allow=(f"Bash({command.split()[0]} *)",))) == "ask"
    assert decided(command, PermissionRules(allow=("Bash",), deny=("Bash(rm *)",))) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "sort -u -k 2 a",
        "split -l 5 a",
        "scp -r a b:",
        "rg --pretty -n x",
        "zip -r a.zip b",
        "man 3 printf",
        "wget -q http://a",
    ],
)
def test_other_options_of_these_programs_are_matched(command: str):
    assert decided(command, PermissionRules(allow=(f"Bash({command.split()[0]} *)",))) == "allow"


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    "starter",
    [
        "setpriv --no-new-privs",
        "setarch x86_64",
        "linux32",
        "linux64",
        "prlimit --nofile=9",
        "choom -n 5 --",
        "systemd-cat",
        "gosu root",
        "su-exec root",
        "fakeroot",
        "valgrind -q",
        "perf stat",
        "chronic",
        "dbus-run-session --",
        "xvfb-run -a",
        "dtach -n socket",
        "abduco -c name",
        "sem -j 2",
        "watchexec --",
        "nodemon --exec",
        "reflex --",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-musl-x86_64.so.1",
        "ld.so",
    ],
)
def test_a_deny_rule_applies_through_programs_that_start_programs(starter: str):
    for rm in ("rm -f x", "/bin/rm -f x"):
        rules = PermissionRules(allow=("Bash",), deny=("Bash(rm *)",))
        assert decided(f"{starter} {rm}", rules) == "deny"
        assert decided(f"{starter} {rm}", rules, "bypassPermissions") == "deny"
        name = starter.split()[0]
        assert decided(f"{starter} {rm}", PermissionRules(allow=(f"Bash({name} *)",))) == "ask"


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("odd", ["\x0c", "\u2028", "\r", "\x0b", "\x1c", "\u00a0", "\u3000"])
def test_an_exact_allow_ignores_only_white_space_that_shells_ignore(odd: str):
    rules = PermissionRules(allow=("Bash(git status)",))
    assert decided(f"git status{odd}", rules) == "ask"
    assert decided(f"{odd}git status", rules) == "ask"
    assert decided(" \t\ngit status \t\n", rules) == "allow"
    deny = PermissionRules(allow=("Bash",), deny=("Bash(git status)",))
    assert decided(f"{odd}git status{odd}", deny) == "deny"
