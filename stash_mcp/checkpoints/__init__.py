"""A reward model's files, without loading the model: what they must be, and their archive.

Light on purpose: the server checks what a person imports, and never loads torch for it.
"""

from stash_mcp.checkpoints.archive import TOP_FOLDER, pack
from stash_mcp.checkpoints.contract import (
    RewardStats,
    read_input_format,
    verify_checkpoint,
    verify_whole_checkpoint,
    write_stats,
)
from stash_mcp.checkpoints.folder import require_room, staged_folder
from stash_mcp.checkpoints.places import STATS_FILE
from stash_mcp.checkpoints.unpacking import Origin, unpack

__all__ = [
    "STATS_FILE",
    "TOP_FOLDER",
    "Origin",
    "RewardStats",
    "pack",
    "read_input_format",
    "require_room",
    "staged_folder",
    "unpack",
    "verify_checkpoint",
    "verify_whole_checkpoint",
    "write_stats",
]
