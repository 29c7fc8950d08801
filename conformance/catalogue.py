"""Every server scenario of the suite: what it checks of this server, or why it does not apply.

A scenario is run at every version of the protocol that the suite lists for it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """beyond: the checks of it that want tools of the suite's own, which this server has not. They
    have to fail: one that passes, or is gone, belongs off the list.
    """

    name: str
    checks: str
    beyond: tuple[str, ...] = ()


APPLY = (
    Scenario("server-initialize", "The handshake of the older protocols"),
    Scenario("server-session-lifecycle", "Sessions of the older protocols begin, last and end"),
    Scenario(
        "server-stateless",
        "Requests that stand alone: discovery, versions, errors, subscriptions",
        beyond=(
            # The tool test_missing_capability.
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            # Tools that change the lists; ours never change.
            "sep-2575-server-sends-prompts-list-changed-on-subscription",
            "sep-2575-server-sends-tools-list-changed-on-subscription",
        ),
    ),
    Scenario("ping", "A ping is answered"),
    Scenario("completion-complete", "A completion has the form that it must have"),
    Scenario("tools-list", "Every tool has a name, a description and an input schema"),
    Scenario("server-sse-multiple-streams", "Several requests of one client at once"),
    Scenario("resources-list", "Every resource has an address and a name"),
    Scenario("resources-subscribe", "An older client subscribes to a resource"),
    Scenario("resources-unsubscribe", "And unsubscribes from it"),
    Scenario("sep-2164-resource-not-found", "An unknown resource is refused with its address"),
    Scenario("prompts-list", "Every prompt has a name and described arguments"),
    Scenario("dns-rebinding-protection", "Foreign Host and Origin headers are turned away"),
    Scenario("caching", "Lists say how long and for whom they may be kept"),
    Scenario("http-header-validation", "Headers that contradict the request are refused"),
    Scenario("sep-2640-skills-enumeration", "Skills over MCP: the list, the digests, the errors"),
    Scenario("sep-2640-skills-directory", "Skills over MCP: the folders of a skill"),
    Scenario("sep-2640-skills-manifest", "Skills over MCP: the files of a skill as listed"),
    Scenario(
        "tasks-capability-negotiation",
        "Tasks are declared, and refused to a client that does not declare them",
        # The tool slow_compute.
        beyond=("tasks-per-request-meta-opt-in",),
    ),
    Scenario(
        "tasks-dispatch-and-envelope",
        "Tasks: what was removed is gone, unknown ids are refused, no call becomes one unasked",
        # The tools slow_compute and failing_job.
        beyond=(
            "tasks-server-directed-creation-no-hint",
            "sep-2663-durable-create-strong-consistency",
        ),
    ),
    Scenario(
        "tasks-request-headers",
        "Tasks: a header that names another method is refused",
        # The tools greet and slow_compute.
        beyond=(
            "tasks-headers-tolerate-mcp-method-on-tools-call",
            "sep-2663-routing-headers-accepted-on-tasks-get",
            "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
        ),
    ),
)

_TASK_TOOLS = "Wants the suite's own slow and failing tools; tests/server/test_tasks.py has ours"
_INPUT = "Wants the suite's own tools; no tool of ours asks a client for input"
_TOOL = "Wants a tool of the suite's own"
_RESOURCE = "Wants a resource of the suite's own, test://..."
_PROMPT = "Wants a prompt of the suite's own"
_LOGGING = "No log messages to clients: deprecated, and not declared"

DO_NOT_APPLY = {
    "logging-set-level": _LOGGING,
    "tools-call-with-logging": _LOGGING,
    "tools-call-simple-text": f"{_TOOL}; any refusal passes it, so it would show nothing",
    "tools-call-error": f"{_TOOL}; any refusal passes it, so it would show nothing",
    "tools-call-image": f"{_TOOL}; ours answer with text",
    "tools-call-audio": f"{_TOOL}; ours answer with text",
    "tools-call-embedded-resource": f"{_TOOL}; ours answer with text",
    "tools-call-mixed-content": f"{_TOOL}; ours answer with text",
    "tools-call-with-progress": f"{_TOOL}; tests/server/test_waiting.py has ours",
    "tools-call-sampling": "No tool of ours asks for sampling: deprecated",
    "tools-call-elicitation": _INPUT,
    "elicitation-sep1034-defaults": _INPUT,
    "elicitation-sep1330-enums": _INPUT,
    "json-schema-2020-12": f"{_TOOL}, with a schema that uses all of JSON Schema; ours are flat",
    "server-sse-polling": f"{_TOOL}; no call of ours is so long that its stream is resumed",
    "resources-read-text": _RESOURCE,
    "resources-read-binary": f"{_RESOURCE}; ours are text",
    "resources-templates-read": _RESOURCE,
    "prompts-get-simple": _PROMPT,
    "prompts-get-with-args": _PROMPT,
    "prompts-get-embedded-resource": _PROMPT,
    "prompts-get-with-image": f"{_PROMPT}; ours are text",
    "http-custom-header-server-validation": "No parameter of ours is mirrored in a header",
    "tasks-lifecycle": _TASK_TOOLS,
    "tasks-wire-fields": _TASK_TOOLS,
    "tasks-request-state-removal": _TASK_TOOLS,
    "tasks-mrtr-input": _INPUT,
    "tasks-mrtr-composition": _INPUT,
    "tasks-status-notifications": "The suite itself skips it",
    "tasks-required-task-error": "Wants a tool that works as a task alone; ours work without",
    "input-required-result-basic-elicitation": _INPUT,
    "input-required-result-basic-sampling": _INPUT,
    "input-required-result-basic-list-roots": _INPUT,
    "input-required-result-request-state": _INPUT,
    "input-required-result-multiple-input-requests": _INPUT,
    "input-required-result-multi-round": _INPUT,
    "input-required-result-missing-input-response": _INPUT,
    "input-required-result-non-tool-request": f"{_PROMPT}; none of ours asks for input",
    "input-required-result-result-type": _INPUT,
    "input-required-result-unsupported-methods": f"{_INPUT}, so it would show nothing",
    "input-required-result-tampered-state": _INPUT,
    "input-required-result-capability-check": _INPUT,
    "input-required-result-ignore-extra-params": f"{_INPUT}, so it would show nothing",
    "input-required-result-validate-input": f"{_INPUT}, so it would show nothing",
}
