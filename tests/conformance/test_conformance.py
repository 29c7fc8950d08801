"""The run of the conformance suite: what counts as green, with a stand-in for the suite."""

import json
import sys
from pathlib import Path

import pytest

from conformance.__main__ import main, run
from conformance.catalogue import APPLY, DO_NOT_APPLY, Scenario
from conformance.inspector import listed_tools
from conformance.judging import judge, unknown
from conformance.npm import Tools
from conformance.serving import ServerError, http_server
from conformance.suite import Check, Suite, SuiteError

SUITE = """
import json, pathlib, sys, urllib.request

names, arguments = json.loads(sys.argv[1]), sys.argv[2:]
if arguments[0] == "list":
    print("Server scenarios (test against a server):")
    for name in names:
        versions = "2025-06-18,2025-11-25" if name == "ping" else "extension"
        print(f"  - {name} [{versions}]")
    sys.exit()
options = dict(zip(arguments[1::2], arguments[2::2]))
if options["--scenario"] != "ping":
    sys.exit("no such scenario")
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": options["--spec-version"], "capabilities": {},
    "clientInfo": {"name": "stand-in", "version": "0"}}}).encode()
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
request = urllib.request.Request(options["--url"], body, headers)
with urllib.request.urlopen(request, timeout=30) as answer:
    named = b"stash-skills" in answer.read()
folder = pathlib.Path(options["--output-dir"], "server-ping")
folder.mkdir()
check = {"id": "ping", "status": "SUCCESS" if named else "FAILURE", "errorMessage": None}
(folder / "checks.json").write_text(json.dumps([check]))
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    path = tmp_path / "suite.py"
    path.write_text(SUITE, encoding="utf-8")
    names = [scenario.name for scenario in APPLY] + list(DO_NOT_APPLY)
    return Suite([sys.executable, str(path), json.dumps(names)])


def problems(scenario: Scenario, *checks: tuple[str, str]) -> tuple[str, ...]:
    return judge(scenario, [Check(id, status, "why") for id, status in checks]).problems


def test_only_checks_that_pass_and_remarks_are_green() -> None:
    plain = Scenario("one", "")
    verdict = judge(plain, [Check("a", "SUCCESS"), Check("b", "SUCCESS"), Check("c", "INFO")])
    assert (verdict.passed, verdict.beyond, verdict.problems) == (2, 0, ())
    for status in ("FAILURE", "WARNING", "SKIPPED", "NEW"):
        assert problems(plain, ("a", "SUCCESS"), ("b", status)) == (f"{status} b: why",)


@pytest.mark.parametrize("checks", [(), (("a", "INFO"),), (("wire-schema-valid", "SUCCESS"),)])
def test_a_scenario_that_checked_nothing_is_not_green(checks: tuple[tuple[str, str], ...]) -> None:
    assert problems(Scenario("one", ""), *checks) == ("Nothing was checked.",)


def test_a_check_that_is_beyond_this_server_has_to_be_there_and_to_fail() -> None:
    scenario = Scenario("one", "", beyond=("far",))
    assert problems(scenario, ("a", "SUCCESS"), ("far", "FAILURE")) == ()
    [passing] = problems(scenario, ("a", "SUCCESS"), ("far", "SUCCESS"))
    assert passing.startswith("far passes")
    [gone] = problems(scenario, ("a", "SUCCESS"))
    assert gone.startswith("far is no longer checked")


def test_a_scenario_that_is_new_or_gone_or_named_twice_is_a_problem() -> None:
    apply = (Scenario("one", ""), Scenario("two", ""))
    assert unknown(["one", "two", "three"], apply, {"three": "why"}) == []
    assert unknown(["one", "renamed"], apply, {"one": "why"}) == [
        "The catalogue has one twice.",
        "The suite has no two.",
        "The suite has renamed, and the catalogue does not.",
    ]


def test_the_real_server_is_asked_at_every_version_that_the_suite_lists(suite: Suite) -> None:
    lines, strange = run(Tools(suite.command, ()), ["ping"])
    assert strange == []
    assert [(line.name, line.version) for line in lines] == [
        ("ping", "2025-06-18"),
        ("ping", "2025-11-25"),
    ]
    assert [line.verdict.passed for line in lines] == [1, 1]
    assert [line.problems for line in lines] == [[], []]


def test_a_suite_that_lists_nothing_or_writes_no_result_is_an_error(suite: Suite) -> None:
    with pytest.raises(SuiteError, match="no such scenario"):
        suite.run("caching", None, "http://127.0.0.1:9/mcp")
    with pytest.raises(SuiteError, match="lists no scenarios"):
        Suite([sys.executable, "-c", "print('help')"]).scenarios()


def test_a_server_that_does_not_start_is_told_with_its_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no library here')"]
    with pytest.raises(ServerError, match="no library here"), http_server({}, command):
        pass


@pytest.mark.parametrize(
    ("program", "tools", "problem"),
    [
        ("print('{\"tools\": [{}, {}]}')", 2, ""),
        ("print('{\"tools\": []}')", 0, "It listed no tools."),
        ("import sys; sys.exit('schema of get_run')", 0, "It ended with 1: schema of get_run\n"),
    ],
)
def test_the_inspector_is_green_only_with_tools_and_no_complaint(
    program: str, tools: int, problem: str
) -> None:
    assert listed_tools([sys.executable, "-c", program], {}, ["server"]) == (tools, problem)


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pong"])
    assert "'pong' is not among the scenarios that apply" in capsys.readouterr().err
