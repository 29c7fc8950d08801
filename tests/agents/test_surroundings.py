import subprocess
import sys
import venv
from pathlib import Path

import pytest

from stash_mcp.agents.surroundings import Surroundings, _kind, _source, here


def made(tmp_path: Path, kind: str, **more: object) -> Surroundings:
    scripts = tmp_path / "bin"
    return Surroundings(kind, scripts / "python", tmp_path, scripts, **more)  # type: ignore[arg-type]


def test_each_way_of_installing_is_recognised(tmp_path: Path) -> None:
    assert _kind(tmp_path, True) == "venv"
    assert _kind(tmp_path, False) == "system"
    assert _kind(tmp_path / "uv" / "archive-v0" / "aX3", True) == "uvx"
    (tmp_path / "pipx_metadata.json").touch()
    assert _kind(tmp_path, True) == "pipx"
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "uv-receipt.toml").touch()
    assert _kind(tmp_path / "tool", True) == "uv-tool"


def test_the_command_is_the_script_of_this_environment_or_its_python(tmp_path: Path) -> None:
    found = made(tmp_path, "venv")
    assert found.serve_command() == [str(tmp_path / "bin/python"), "-m", "stash_mcp", "serve"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "stash-skills").touch()
    assert found.serve_command() == [str(tmp_path / "bin" / "stash-skills"), "serve"]


def test_an_environment_that_is_gone_tomorrow_is_named_by_uvx(tmp_path: Path) -> None:
    found = made(tmp_path, "uvx")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "stash-skills").touch()
    which = {"uvx": "/home/me/.local/bin/uvx"}.get
    start = ["stash-skills", "serve"]
    assert found.serve_command(which=which) == ["/home/me/.local/bin/uvx", *start]
    assert found.serve_command(portable=True, which=which) == ["uvx", *start]
    from_git = made(tmp_path, "uvx", source="git+https://x/y@main")
    asked = ["uvx", "--from", "stash-skills @ git+https://x/y@main", *start]
    assert from_git.serve_command(portable=True) == asked


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (None, None),
        ('{"url": "file:///src", "dir_info": {}}', "file:///src"),
        (
            '{"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "a"}}',
            "git+https://x/y.git",
        ),
        (
            '{"url": "https://x/y.git", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}',
            "git+https://x/y.git@v1",
        ),
    ],
)
def test_where_a_package_came_from_is_where_it_comes_from_again(
    record: str | None, source: str | None
) -> None:
    assert _source(record) == source


@pytest.mark.skipif(sys.platform == "win32", reason="quotes differ there")
def test_the_line_that_adds_a_part_fits_the_way_of_installing(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert made(tmp_path, "venv").how_to_add("local") == (
        f"{python} -m pip install 'stash-skills[local]'"
    )
    cpu = made(tmp_path, "pipx").how_to_add("local", index="https://cpu")
    assert cpu == (
        "pipx install --force --pip-args='--extra-index-url https://cpu' 'stash-skills[local]'"
    )
    for kind in ("uvx", "uv-tool"):
        line = made(tmp_path, kind, source="git+https://x").how_to_add("local")
        assert line == "uv tool install --force 'stash-skills[local] @ git+https://x'"
    managed = made(tmp_path, "system", managed=True)
    assert managed.how_to_add("demo").startswith("python3 -m venv")
    assert not managed.can_be_added_to


def test_this_environment_is_known_and_its_command_runs() -> None:
    found = here()
    assert found.executable == Path(sys.executable)
    start = found.serve_command()
    assert start[-1] == "serve"
    done = subprocess.run([*start[:-1], "version"], capture_output=True, check=True)
    assert b"stash-skills" in done.stdout


def test_a_real_virtual_environment_is_named_by_its_own_python(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=sys.platform != "win32")
    folder = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python = next(path for path in folder.iterdir() if path.stem == "python")
    root = Path(__file__).parents[2]
    code = (
        f"import sys; sys.path[:0] = [{str(root)!r}]\n"
        "from stash_mcp.agents.surroundings import here\n"
        "found = here(); print(found.kind, found.executable)"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split(maxsplit=1) == ["venv", f"{python}\n"]
