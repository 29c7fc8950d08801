"""A checkpoint's files: their names, and where they lie as against what messages call them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stash_mcp.errors import CheckpointError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
STATS_FILE = "reward_stats.json"

TAKE_WHOLE = "Import the whole folder that a training saved."
RETRAIN = "Train the reward model again."

_MAX_JSON_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Place:
    """shown: the name of the folder, or of the archive that it is a passing copy of."""

    folder: Path
    shown: str

    def file(self, name: str) -> Path:
        return self.folder / name

    def name_of(self, name: str) -> str:
        """The file as messages call it."""
        own = self.shown == str(self.folder)
        return str(self.file(name)) if own else f"{name} of {self.shown}"


def read_object(place: Place, name: str) -> dict[str, Any]:
    """The JSON object in a file of the checkpoint; CheckpointError for what is none."""
    path, shown = place.file(name), place.name_of(name)
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise CheckpointError(f"{shown} is too large for what it is.", TAKE_WHOLE)
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{shown} is not valid JSON: {error}.", TAKE_WHOLE) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{shown} is not a JSON object.", TAKE_WHOLE)
    return value
