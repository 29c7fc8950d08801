"""A real installer in a real process, with packages from a folder: no network."""

import sys
import time
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stash_mcp.agents.surroundings import Surroundings
from stash_mcp.doctor import installing
from stash_mcp.doctor.installation import _required_by, local_part, requirements_of
from stash_mcp.doctor.installing import InstallRecord, InstallState, lock_path, log_path
from stash_mcp.errors import UnsupportedError
from stash_mcp.settings import Settings, installer_environment
from stash_mcp.storage.files import try_lock

BOUND_SECONDS = 60


def wheel(folder: Path, name: str, text: str = "") -> None:
    """A package of one module."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", text)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def ended(home: Path) -> InstallState:
    until = time.monotonic() + BOUND_SECONDS
    while time.monotonic() < until:
        state = installing.state(home, datetime.now(UTC))
        if state is not None and not state.is_running:
            return state
        # The end is noted by another process: there is nothing to wait on.
        time.sleep(0.05)
    raise AssertionError("the installation did not end")


def begin(settings: Settings, surroundings: Surroundings, requirement: str, packages: Path) -> Path:
    target = packages.parent / "target"
    installing.start(
        settings,
        surroundings,
        [requirement],
        now=datetime.now(UTC),
        options=["--no-index", "--find-links", str(packages), "--target", str(target)],
    )
    return target


def test_it_is_done_in_the_background_and_its_end_is_seen(
    settings: Settings, surroundings: Surroundings, tmp_path: Path
) -> None:
    wheel(tmp_path / "packages", "tinystub", "x = 1\n")
    assert installing.state(settings.home, datetime.now(UTC)) is None
    target = begin(settings, surroundings, "tinystub", tmp_path / "packages")
    started = installing.state(settings.home, datetime.now(UTC))
    assert started is not None
    assert started.is_running or started.succeeded
    assert ended(settings.home).succeeded
    assert (target / "tinystub.py").read_text() == "x = 1\n"


def test_a_failure_says_why_and_where_the_log_is(
    settings: Settings, surroundings: Surroundings, tmp_path: Path
) -> None:
    (tmp_path / "packages").mkdir()
    begin(settings, surroundings, "not-there-at-all", tmp_path / "packages")
    state = ended(settings.home)
    assert not state.succeeded
    assert "No matching distribution" in state.said
    assert str(log_path(settings.home)) in state.said
    assert "Not installed. The installation failed" in local_part_of(surroundings, state)


def local_part_of(surroundings: Surroundings, state: InstallState) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stash_mcp.doctor.installation.has_extra", lambda _extra: False)
        return local_part(surroundings, state).said


def test_one_that_goes_on_is_not_started_twice(
    settings: Settings, surroundings: Surroundings, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    record = InstallRecord(started_at=now - timedelta(seconds=90))
    installing.write_record(settings.home, record)
    log_path(settings.home).write_text("Collecting a\nDownloading torch-2 (200 MB)\n")
    with try_lock(lock_path(settings.home)) as ours:
        assert ours
        begin(settings, surroundings, "tinystub", tmp_path)
        state = installing.state(settings.home, now)
    assert state is not None
    assert state.is_running
    assert state.said == "Being installed for 90 s: downloading. Downloading torch-2 (200 MB)"
    interrupted = installing.state(settings.home, now)
    assert interrupted is not None
    assert "was interrupted" in interrupted.said


def test_what_cannot_be_added_to_is_refused_with_the_line(
    settings: Settings, surroundings: Surroundings
) -> None:
    for changed in (
        replace(surroundings, kind="uvx"),
        replace(surroundings, kind="system", managed=True),
    ):
        with pytest.raises(UnsupportedError) as refused:
            installing.start(settings, changed, ["x"], now=datetime.now(UTC))
        assert "stash-skills[local]" in refused.value.fix
        assert installing.state(settings.home, datetime.now(UTC)) is None


def test_uv_or_pipx_do_it_where_there_is_no_pip(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing.importlib.util, "find_spec", lambda _name: None)
    python = str(surroundings.executable)
    uv = installing._installer(surroundings, None, {"uv": "/u/uv"}.get)
    assert uv[:5] == ["/u/uv", "pip", "install", "--python", python]
    pipx = replace(surroundings, kind="pipx")
    assert installing._installer(pipx, None, {"pipx": "/p/pipx"}.get)[:2] == ["/p/pipx", "runpip"]
    with pytest.raises(UnsupportedError, match="has no pip"):
        installing._installer(surroundings, None, {}.get)


def test_torch_comes_without_cuda_unless_the_person_chose_otherwise() -> None:
    assert installer_environment(cpu_torch="https://cpu", environ={})["PIP_EXTRA_INDEX_URL"] == (
        "https://cpu"
    )
    own = {"PIP_EXTRA_INDEX_URL": "https://mine"}
    chosen = installer_environment(cpu_torch="https://cpu", environ=own)
    assert chosen["PIP_EXTRA_INDEX_URL"] == "https://mine"
    assert "PIP_EXTRA_INDEX_URL" not in installer_environment(cpu_torch=None, environ={})


def test_the_requirements_are_those_of_this_installation() -> None:
    found = requirements_of("local")
    assert any(row.startswith("torch") for row in found)
    assert any(row.startswith("gepa==") for row in found)
    assert not any("extra" in row or "pytest" in row for row in found)


@pytest.mark.parametrize(
    ("declared", "required"),
    [
        ("torch>=2.6; extra == 'local'", "torch>=2.6"),
        ('x; sys_platform == "linux" and extra == "local"', 'x ; sys_platform == "linux"'),
        ("y; extra == 'dev'", None),
        ("mcp<3,>=2.3", None),
    ],
)
def test_a_requirement_keeps_its_other_conditions(declared: str, required: str | None) -> None:
    assert _required_by(declared, "local") == required


def test_the_python_of_the_installer_is_the_running_one(surroundings: Surroundings) -> None:
    assert installing._installer(surroundings, None, {}.get)[0] == sys.executable
