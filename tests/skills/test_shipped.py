"""The skills that ship: each keeps the rules that it is the reason for."""

import tomllib
from pathlib import Path

import pytest
from skills_ref import validate

from stash_mcp.skills.document import read_document
from stash_mcp.skills.scan import find_active
from stash_mcp.skills.shipped import shipped_skills

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in (ROOT / "skills").iterdir() if path.is_dir())


def test_every_folder_is_read_as_a_skill_with_all_of_its_files() -> None:
    read = {skill.name: {file.path for file in skill.files} for skill in shipped_skills()}
    assert read == {
        folder.name: {
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        }
        for folder in FOLDERS
    }
    assert len(read) >= 2
    assert all(skill.files[0].path == "SKILL.md" for skill in shipped_skills())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_passes_our_rules_the_scan_and_the_reference_validator(folder: Path) -> None:
    document = read_document((folder / "SKILL.md").read_text("utf-8"))
    assert document.other_keys == ()
    assert document.skill.name == folder.name
    assert validate(folder) == []
    for path in folder.rglob("*"):
        if path.is_file():
            # Agents are told to read them; resources are given as Markdown.
            assert path.suffix == ".md"
            assert find_active(path.read_text("utf-8")) == ()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_file_that_it_names_is_there_and_every_file_is_named(folder: Path) -> None:
    text = (folder / "SKILL.md").read_text("utf-8")
    for path in (folder / "references").iterdir():
        assert f"`references/{path.name}`" in text
    assert text.count("`references/") == len(list((folder / "references").iterdir()))


def test_a_wheel_carries_them_below_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"skills": "stash_mcp/shipped_skills"}
