"""What the checks of a scenario amount to, and whether the catalogue knows the suite."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.catalogue import Scenario
from conformance.suite import Check

# Of what the suite observes by the way, for every scenario.
_WIRE_SCHEMA = "wire-schema-valid"
_REMARK = "INFO"
_SUCCESS = "SUCCESS"


@dataclass(frozen=True)
class Verdict:
    """passed, beyond: how many checks. problems: none where it is green."""

    passed: int
    beyond: int
    problems: tuple[str, ...]


def judge(scenario: Scenario, checks: Sequence[Check]) -> Verdict:
    """A warning and a skipped check are problems too: they are named in the catalogue or mended."""
    passed = [check for check in checks if check.status == _SUCCESS]
    rest = [check for check in checks if check.status not in (_SUCCESS, _REMARK)]
    failed = [check for check in rest if check.id not in scenario.beyond]
    problems = [f"{check.status} {check.id}: {check.message}" for check in failed]
    problems += _not_beyond(scenario, passed, rest)
    if all(check.id == _WIRE_SCHEMA for check in passed):
        problems.append("Nothing was checked.")
    return Verdict(len(passed), len(rest) - len(failed), tuple(problems))


def _not_beyond(
    scenario: Scenario, passed: Iterable[Check], rest: Iterable[Check]
) -> Iterable[str]:
    passing, others = {check.id for check in passed}, {check.id for check in rest}
    for name in scenario.beyond:
        if name in passing:
            yield f"{name} passes: it belongs off the list of what is beyond this server."
        elif name not in others:
            yield f"{name} is no longer checked: it belongs off the list."


def unknown(
    suite: Iterable[str], apply: Sequence[Scenario], do_not_apply: Mapping[str, str]
) -> list[str]:
    """Where the catalogue and the suite differ: a scenario that is new, gone or named twice."""
    there = set(suite)
    named = Counter([*(scenario.name for scenario in apply), *do_not_apply])
    new = [f"The suite has {name}, and the catalogue does not." for name in there - set(named)]
    gone = [f"The suite has no {name}." for name in set(named) - there]
    twice = [f"The catalogue has {name} twice." for name, times in named.items() if times > 1]
    return sorted(new + gone + twice)
