"""Skills over MCP (SEP-2640): what skills/list, skills/get and resources/directory/read answer."""

import hashlib
from typing import Literal

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CacheableResult, Resource
from pydantic import BaseModel

from stash_mcp.errors import NotFoundError
from stash_mcp.server import resource_uris as uris
from stash_mcp.server.catalogue import offset_of, page_of, skill_file
from stash_mcp.server.offered_skills import OfferedSkills
from stash_mcp.server.refusals import in_words
from stash_mcp.server.shortening import fit, next_offset
from stash_mcp.skills.shipped import SKILL_FILE, SkillFolder

_SCHEME = "skill://"


class SkillFileEntry(BaseModel):
    uri: str
    digest: str
    """`sha256:` and 64 lower-case hexadecimal digits, of the raw bytes."""
    size: int


class Frontmatter(BaseModel):
    name: str
    description: str


class SkillEntry(BaseModel):
    uri: str
    frontmatter: Frontmatter
    resources: list[SkillFileEntry]


class ListSkillsResult(CacheableResult):
    skills: list[SkillEntry]
    next_cursor: str | None = None
    result_type: Literal["complete"] = "complete"


class GetSkillResult(CacheableResult):
    skill: SkillEntry
    result_type: Literal["complete"] = "complete"


class ReadDirectoryResult(CacheableResult):
    resources: list[Resource]
    next_cursor: str | None = None
    result_type: Literal["complete"] = "complete"


def list_skills(skills: OfferedSkills, cursor: str | None) -> ListSkillsResult:
    offset = offset_of(cursor)
    everything = skills.all()
    page = fit(_entry(skill) for skill in everything[offset:])
    following = next_offset(offset, len(page), len(everything))
    return ListSkillsResult(
        skills=list(page), next_cursor=None if following is None else str(following)
    )


def get_skill(skills: OfferedSkills, uri: str) -> GetSkillResult:
    name, path = _parts(uri)
    if path != SKILL_FILE:
        raise MCPError(
            INVALID_PARAMS, f"{uri} is not a skill's SKILL.md. skills/list has the addresses."
        )
    return GetSkillResult(skill=_entry(_found(skills, name)))


def read_directory(skills: OfferedSkills, uri: str, cursor: str | None) -> ReadDirectoryResult:
    """The files and folders directly below a skill's folder, or below one in it."""
    name, path = _parts(uri.rstrip("/"))
    children = _children(_found(skills, name), f"{path}/" if path else "")
    if not children:
        raise MCPError(
            INVALID_PARAMS, f"{uri} is not a folder. {uris.skill_uri(name)} is the skill's own."
        )
    page, following = page_of(children, cursor)
    return ReadDirectoryResult(resources=page, next_cursor=following)


def _found(skills: OfferedSkills, name: str) -> SkillFolder:
    try:
        return skills.find(name)
    except NotFoundError as error:
        raise MCPError(INVALID_PARAMS, in_words(error)) from error


def _parts(uri: str) -> tuple[str, str]:
    """The skill's name and the path below its folder; empty for the folder itself."""
    if not uri.startswith(_SCHEME):
        raise MCPError(INVALID_PARAMS, f"{uri} is not the address of a skill, skill://NAME/...")
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    return name, path


def _entry(skill: SkillFolder) -> SkillEntry:
    return SkillEntry(
        uri=uris.skill_uri(skill.name, SKILL_FILE),
        frontmatter=Frontmatter(name=skill.name, description=skill.description),
        resources=[
            SkillFileEntry(
                uri=uris.skill_uri(skill.name, file.path),
                digest=f"sha256:{hashlib.sha256(file.content).hexdigest()}",
                size=len(file.content),
            )
            for file in skill.files
        ],
    )


def _children(skill: SkillFolder, below: str) -> list[Resource]:
    children: dict[str, Resource] = {}
    for file in skill.files:
        if not file.path.startswith(below):
            continue
        child, _, deeper = file.path.removeprefix(below).partition("/")
        if child not in children:
            children[child] = (
                _folder(skill.name, below + child) if deeper else skill_file(skill, file)
            )
    return list(children.values())


def _folder(skill: str, path: str) -> Resource:
    return Resource(
        uri=uris.skill_uri(skill, path), name=path.rpartition("/")[2], mime_type=uris.FOLDER
    )
