"""Every exception that this package raises.

Each carries two sentences: what happened and to what (`problem`), and what to do next (`fix`).
Third-party errors are translated where they enter and never reach a person.

    StashSkillsError
    ├── InputError                  something that was given cannot be used
    │   ├── TraceFormatError        a conversation file or a line of it
    │   ├── AnnotationError         a rating, comment or quote
    │   ├── SkillDocumentError      a SKILL.md, a skill's name or its description
    │   ├── PairsError              the ratings give too few preference pairs
    │   ├── ExamplesError           no conversation can be replayed
    │   ├── BudgetError             the budget is too small for the run
    │   ├── ConfigFileError         another program's configuration that cannot be edited
    │   ├── VariableError           a variable of the environment
    │   └── ReflectionRefusedError  what an agent wrote for a run; it may submit again
    ├── NotFoundError               an unknown trace, reward model, run or candidate
    ├── NotReadyError               the object exists and is not finished
    ├── UnsupportedError            this backend cannot do it
    ├── MissingExtraError           an optional part of the installation is missing
    ├── ListenError                 the HTTP server's port
    ├── StorageError                the disk or the library
    │   ├── DiskFullError
    │   ├── NotWritableError
    │   ├── LibraryBusyError        another process holds the library
    │   └── LibraryDamagedError
    ├── CheckpointError             a reward model's files
    ├── TrainingError               a reward model could not be trained
    ├── InstallError                a skill was not written
    │   ├── InstallConflictError    what is there is not ours, or was edited
    │   └── InstallBusyError        somebody else is at it; it may succeed later
    ├── ModelError                  a task or reflection model
    │   ├── RequestRejectedError    this one request; the example scores 0
    │   ├── EmptyReplyError         an answer without text; the example scores 0
    │   ├── ModelAuthError          no key, or a refused one
    │   ├── ModelNotFoundError      the model's name or its base URL
    │   ├── ModelRateLimitError     after bounded retries
    │   ├── ModelUnreachableError   nothing answers there
    │   ├── ModelServerError        5xx, timeouts, after bounded retries
    │   └── ModelAnswerError        answers that stay unusable after asking again
    ├── StashError                  the hosted service Stash
    │   ├── StashAddressError       a URL that is not used: malformed, unsafe, another host's
    │   ├── StashKeyError           no key, or a refused or read-only one
    │   ├── StashFeatureError       the account has no reward models
    │   ├── StashNotFoundError      an unknown id or somebody else's; a NotFoundError too
    │   ├── StashNotReadyError      not finished there; a NotReadyError too
    │   ├── StashRejectedError      a request that it refuses; an InputError too
    │   ├── StashOutdatedError      an older server wants more; an UnsupportedError too
    │   ├── StashRateLimitError     after bounded retries
    │   ├── StashUnreachableError   nothing answers there, or not over a connection to trust
    │   ├── StashTimeoutError       no whole answer in time
    │   ├── StashServerError        5xx, a gateway's page, after bounded retries
    │   ├── StashAnswerError        an answer that is not what the contract says
    │   │   └── StashMisfitError    of this one thing; others may be sound
    │   └── StashUncertainError     the answer was lost; whether it took effect is not known
    └── RunError                    a run that cannot go on
"""

import re
from typing import ClassVar

_DOUBLE_STOP = re.compile(r"(?<!\.)\. ?\.$")


def sentence(words: str) -> str:
    """Somebody else's words as a sentence: they end in one full stop, or as they do."""
    words = words.rstrip()
    if words.endswith(("...", "!", "?", "…")):
        return words
    return f"{words.rstrip('.;:, ')}."


class StashSkillsError(Exception):
    """Base of the tree. `str(error)` is the problem followed by the fix."""

    code: ClassVar[str] = "error"

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem, fix)
        # Words of a library or of the system, put at the end, often bring a full stop of their own.
        self.problem = _DOUBLE_STOP.sub(".", problem)
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}"


class InputError(StashSkillsError):
    code = "invalid_input"


class TraceFormatError(InputError):
    code = "invalid_trace"


class AnnotationError(InputError):
    code = "invalid_annotation"


class SkillDocumentError(InputError):
    code = "invalid_skill"


class PairsError(InputError):
    code = "too_few_pairs"


class ExamplesError(InputError):
    code = "no_examples"


class BudgetError(InputError):
    """`minimum` is the smallest budget, in metric calls, that would be accepted."""

    code = "budget_too_small"

    def __init__(self, problem: str, fix: str, minimum: int) -> None:
        super().__init__(problem, fix)
        self.minimum = minimum


class ReflectionRefusedError(InputError):
    code = "reflection_refused"


class ConfigFileError(InputError):
    """`reason` completes the sentence, with the line where there is one."""

    code = "config_file"

    def __init__(self, reason: str, file: str = "The configuration") -> None:
        super().__init__(
            f"{file} was left as it is: {reason}.",
            "Correct it and do it again, or put the entry there yourself: --print shows it.",
        )
        self.reason = reason


class VariableError(InputError):
    """`name` is the variable's."""

    code = "bad_variable"

    def __init__(self, name: str, problem: str, fix: str) -> None:
        super().__init__(problem, fix)
        self.name = name


class NotFoundError(StashSkillsError):
    code = "not_found"


class NotReadyError(StashSkillsError):
    code = "not_ready"


class UnsupportedError(StashSkillsError):
    code = "unsupported"


class MissingExtraError(StashSkillsError):
    code = "missing_extra"

    def __init__(self, extra: str, needed_for: str, fix: str | None = None) -> None:
        super().__init__(
            f"{needed_for} needs the optional part '{extra}', which is not installed.",
            fix
            or f"Run: pip install 'stash-skills[{extra}]' (in the environment of this command).",
        )
        self.extra = extra


class ListenError(StashSkillsError):
    code = "listen"


class StorageError(StashSkillsError):
    code = "storage"


class DiskFullError(StorageError):
    code = "disk_full"


class NotWritableError(StorageError):
    code = "not_writable"


class LibraryBusyError(StorageError):
    code = "library_busy"


class LibraryDamagedError(StorageError):
    code = "library_damaged"


class CheckpointError(StashSkillsError):
    code = "checkpoint"


class TrainingError(StashSkillsError):
    code = "training"


class InstallError(StashSkillsError):
    code = "install"


class InstallConflictError(InstallError):
    """`diff` is a unified diff from what is on disk to what would have been written."""

    code = "install_conflict"

    def __init__(self, problem: str, fix: str, diff: str) -> None:
        super().__init__(problem, fix)
        self.diff = diff


class InstallBusyError(InstallError):
    code = "install_busy"


class ModelError(StashSkillsError):
    code = "model"


class RequestRejectedError(ModelError):
    code = "model_request_rejected"


class EmptyReplyError(ModelError):
    code = "model_empty_reply"


class ModelAuthError(ModelError):
    code = "model_auth"


class ModelNotFoundError(ModelError):
    code = "model_not_found"


class ModelRateLimitError(ModelError):
    code = "model_rate_limit"


class ModelUnreachableError(ModelError):
    code = "model_unreachable"


class ModelServerError(ModelError):
    code = "model_server"


class ModelAnswerError(ModelError):
    code = "model_answer"


class StashError(StashSkillsError):
    """The service, the way to it, or what it answered.

    passing: the same request may succeed later. reached: it may have taken effect.
    retry_after: seconds that the server asked to wait. begun: a stream broke off after its head.
    """

    code = "stash"
    begun = False

    def __init__(
        self,
        problem: str,
        fix: str,
        *,
        passing: bool = False,
        reached: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(problem, fix)
        self.passing = passing
        self.reached = reached
        self.retry_after = retry_after


class StashAddressError(StashError):
    code = "stash_address"


class StashKeyError(StashError):
    code = "stash_key"


class StashFeatureError(StashError):
    code = "stash_feature"


class StashNotFoundError(StashError, NotFoundError):
    code = "not_found"


class StashNotReadyError(StashError, NotReadyError):
    code = "not_ready"


class StashRejectedError(StashError, InputError):
    code = "stash_rejected"


class StashOutdatedError(StashError, UnsupportedError):
    code = "stash_outdated"


class StashRateLimitError(StashError):
    code = "stash_rate_limit"


class StashUnreachableError(StashError):
    code = "stash_unreachable"


class StashTimeoutError(StashError):
    code = "stash_timeout"


class StashServerError(StashError):
    code = "stash_server"


class StashAnswerError(StashError):
    code = "stash_answer"


class StashMisfitError(StashAnswerError):
    """Stash answered, with something that this version cannot read. What else it has may fit."""


class StashUncertainError(StashError):
    code = "stash_uncertain"


class RunError(StashSkillsError):
    code = "run"
