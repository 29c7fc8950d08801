"""From the name of a base model to a folder of its files on this machine.

The one place where the model hub is asked, and where its errors are translated. Only files that
hold data are fetched, and only from the top of the repository.
"""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from stash_mcp.errors import TrainingError
from stash_mcp.reward.quiet import silence_libraries

_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
_UNWANTED = ["*/*", "consolidated*"]
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")

_ANOTHER_BASE = "Or give the folder of a base model as the base; `make demo` installs a small one."

# The first class that fits counts, so a class stands before those it derives from.
_HUB_ERRORS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        GatedRepoError,
        "The model hub gives {base} only to those who accepted its terms.",
        "Accept them on the model's page and log in with `hf auth login`.",
    ),
    (
        RepositoryNotFoundError,
        "The model hub has no model {base}, or it is private.",
        "Check the name; for a private model log in with `hf auth login`.",
    ),
    (
        LocalEntryNotFoundError,
        "The base model {base} is not on this machine, and the model hub could not be reached.",
        "Check the network and train again.",
    ),
    (
        HfHubHTTPError,
        "The model hub refused to give {base}.",
        "Check the access token (`hf auth whoami`) and train again later.",
    ),
    (
        HFValidationError,
        "There is no folder {base}, and no model on the hub can have that name.",
        "Check the path, or name a model as owner/name.",
    ),
)


def base_model_folder(
    base_model: str, *, endpoint: str | None = None, cache_dir: Path | None = None
) -> Path:
    """The folder of `base_model`: itself if it is a folder, else fetched from the model hub.

    endpoint, cache_dir: the hub's address and where fetched files are kept; default: the usual
    ones. Raises TrainingError if it cannot be had or has no safetensors weights.
    """
    folder = Path(base_model).expanduser()
    if not folder.is_dir():
        folder = _fetch(base_model, endpoint, cache_dir)
    if not (folder / "config.json").is_file():
        raise TrainingError(
            f"The base model {base_model} has no config.json.",
            "Give a folder that transformers' save_pretrained wrote, or a model of the hub.",
        )
    if not any((folder / name).is_file() for name in _WEIGHTS):
        raise TrainingError(
            f"The base model {base_model} has no weights in the safetensors format; others "
            "can run code and are not loaded.",
            f"Choose a base model with {_WEIGHTS[0]}. {_ANOTHER_BASE}",
        )
    return folder


def _fetch(base_model: str, endpoint: str | None, cache_dir: Path | None) -> Path:
    silence_libraries()
    try:
        return Path(
            snapshot_download(
                base_model,
                endpoint=endpoint,
                cache_dir=cache_dir,
                allow_patterns=_WANTED,
                ignore_patterns=_UNWANTED,
            )
        )
    except tuple(kind for kind, _, _ in _HUB_ERRORS) as error:
        raise _translated(base_model, error) from error


def _translated(base_model: str, error: Exception) -> TrainingError:
    problem, fix = next(
        (problem, fix) for kind, problem, fix in _HUB_ERRORS if isinstance(error, kind)
    )
    return TrainingError(problem.format(base=base_model), f"{fix} {_ANOTHER_BASE}")
