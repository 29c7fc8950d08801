"""Runs that start from the installed skill, with what a person changed in it."""

import json
from pathlib import Path

import pytest
from support.staging import DESCRIPTION, Stage, result, skill

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.installations import InstallOrder, RollbackOrder
from stash_mcp.errors import InputError, NotFoundError, SkillDocumentError, StashSkillsError
from stash_mcp.models import AdoptedSkill, Run, RunRequest
from stash_mcp.runs.folder import JobFolder

FIRST = (("Answer.", 0.4), ("Ask for the order number.", 0.6))
EDIT = skill("Ask for the order number.\n\nBe short.") + "\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """One skill is installed, into one place."""
    stage = Stage(tmp_path)
    stage.backend.install_skill(InstallOrder(run_id=stage.finished(*FIRST).id))
    stage.backend.reconcile()
    stage.backend.take_notices()
    return stage


@pytest.fixture
def file(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"


def start(stage: Stage, seed: str = "installed", **order: object) -> Run:
    fields = {
        "reward_model_id": stage.backend.list_reward_models()[0].id,
        "task_model": "openai/small",
        "reflection_model": "builtin/comments",
        "seed": seed,
        **order,
    }
    return stage.backend.start_run(RunOrder.model_validate(fields)).run


def end(stage: Stage, run: Run, *bodies: tuple[str, float]) -> None:
    """The run ends with these candidates; the watcher has looked."""
    stage.begin()
    stage.score(run.id, *bodies)
    stage.store.succeed(run.id, json.dumps(result(bodies)))
    stage.backend.reconcile()


def adopted(run: Run) -> AdoptedSkill:
    assert run.request.adopted is not None
    return run.request.adopted


def test_the_edited_body_is_the_seed_under_the_same_name_and_kept_with_the_run(
    stage: Stage, file: Path
) -> None:
    file.write_text(EDIT, encoding="utf-8")
    run = start(stage)
    assert adopted(run).body == "Ask for the order number.\n\nBe short."
    assert (adopted(run).path, adopted(run).edited) == (str(file), True)
    assert (run.skill_name, run.skill_description) == ("polite-support", DESCRIPTION)
    assert f"{file}, edited by hand since" in run.plan.notes[0]
    folder = JobFolder(stage.settings.runs_dir / run.id)
    stored = json.loads((folder.path / "job.json").read_text("utf-8"))
    assert stored["adopted"] == adopted(run).model_dump()
    file.write_text("gone another way", encoding="utf-8")
    assert stage.backend.get_run(run.id).request == run.request


def test_another_body_is_another_order_and_the_same_one_is_not(stage: Stage, file: Path) -> None:
    plain, same = start(stage), start(stage, str(file.parent))
    assert plain.id == same.id
    assert "edited" not in plain.plan.notes[0]
    file.write_text(EDIT, encoding="utf-8")
    assert start(stage).id != plain.id
    assert start(stage, "default").request.adopted is None


def test_a_name_and_a_description_that_are_given_are_taken(stage: Stage) -> None:
    run = start(stage, "polite-support", skill_name="warm-support", skill_description="When sad.")
    assert (run.skill_name, run.skill_description) == ("warm-support", "When sad.")
    assert adopted(run).body == "Ask for the order number."


def test_a_relative_path_starts_at_the_project(stage: Stage, file: Path) -> None:
    assert adopted(start(stage, ".claude/skills/polite-support/SKILL.md")).path == str(file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no frontmatter", "no frontmatter"),
        (EDIT + "\nRun !`id` now", "shell-command in line 10"),
        (EDIT + "\nSee @~/notes.md", "file-reference in line 10"),
        (EDIT + "x" * 20_000, "at most 20000 are allowed"),
        (EDIT + "x" * 200_000, "bytes"),
        (EDIT.replace("\n---\n", "\nallowed-tools: Bash\n---\n"), "allowed-tools"),
        (EDIT.replace("polite-support", "other-name"), "calls itself 'other-name'"),
        (skill("x").rstrip("x"), "The body is empty"),
    ],
)
def test_a_file_that_no_run_could_have_made_is_refused(
    stage: Stage, file: Path, text: str, says: str
) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SkillDocumentError) as caught:
        start(stage)
    assert says in caught.value.problem
    assert str(file) in caught.value.problem
    assert caught.value.fix
    assert len(stage.backend.list_runs()) == 1


def test_bytes_that_are_no_text_and_a_link_are_refused(stage: Stage, file: Path) -> None:
    file.write_bytes(b"---\xff")
    with pytest.raises(SkillDocumentError, match="not UTF-8"):
        start(stage)
    elsewhere = file.with_name("elsewhere.md")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(StashSkillsError, match="is a link"):
        start(stage)


def test_a_skill_that_is_not_there_is_refused(stage: Stage, file: Path) -> None:
    with pytest.raises(NotFoundError, match="No skill 'other' was installed"):
        start(stage, skill_name="other")
    with pytest.raises(NotFoundError, match="random_seed"):
        start(stage, "7")
    with pytest.raises(NotFoundError, match="No skill was installed"):
        start(stage, install_scope="user")
    file.unlink()
    with pytest.raises(NotFoundError, match=r"is not there any more.*rollback_skill"):
        start(stage)


def test_several_skills_are_listed_and_one_is_named(stage: Stage, file: Path) -> None:
    other = stage.finished(("Answer.", 0.4), ("Else.", 0.6))
    text = skill("Else.").replace("polite-support", "second-skill")
    candidate = stage.backend.list_candidates(other.id)[1].model_copy(update={"skill": text})
    stage.store.put_candidate(other.id, candidate)
    stage.backend.install_skill(InstallOrder(run_id=other.id))
    with pytest.raises(InputError) as caught:
        start(stage)
    assert str(file) in caught.value.problem
    assert "second-skill" in caught.value.problem
    assert adopted(start(stage, skill_name="second-skill")).body == "Else."


def test_of_one_skill_in_several_places_the_edited_file_is_meant(stage: Stage, file: Path) -> None:
    run = stage.backend.list_runs()[0]
    stage.backend.install_skill(InstallOrder(run_id=run.id, agents=("codex",)))
    copy = stage.settings.project_dir / ".agents/skills/polite-support/SKILL.md"
    agents = {"install_agents": ("claude-code", "codex")}
    file.write_text(EDIT, encoding="utf-8")
    assert adopted(start(stage, **agents)).path == str(file)
    copy.write_text(EDIT + "\nMore.", encoding="utf-8")
    with pytest.raises(InputError, match="edited in several ways"):
        start(stage, **agents)


# --- at its end ---


def test_the_adopted_edit_is_replaced_and_stays_a_version(stage: Stage, file: Path) -> None:
    file.write_text(EDIT, encoding="utf-8")
    run = start(stage)
    assert stage.backend.list_installed_skills()[0].state == "edited"
    end(stage, run, ("Be short.", 0.5), ("Be very short.", 0.7))
    [notice] = stage.backend.take_notices()
    assert notice.state == "installed"
    assert "stays as version 2" in notice.note
    assert file.read_text("utf-8").endswith("Be very short.")
    versions = stage.backend.get_installed_skill("polite-support").versions
    assert [(row.version, row.kind) for row in versions] == [
        (1, "install"),
        (2, "adopt"),
        (3, "install"),
    ]
    stage.backend.rollback_skill(RollbackOrder(skill="polite-support"))
    assert file.read_text("utf-8") == EDIT


def test_an_edit_after_the_start_is_never_replaced(stage: Stage, file: Path) -> None:
    file.write_text(EDIT, encoding="utf-8")
    run = start(stage)
    file.write_text(EDIT + "\nAnd kind.", encoding="utf-8")
    end(stage, run, ("Be short.", 0.5), ("Be very short.", 0.7))
    [notice] = stage.backend.take_notices()
    assert notice.state == "staged"
    assert "was edited again since it was taken as the seed" in notice.note
    assert file.read_text("utf-8").endswith("And kind.")


def test_the_edit_of_one_run_is_not_open_to_another(stage: Stage, file: Path) -> None:
    file.write_text(EDIT, encoding="utf-8")
    start(stage, install="off")
    stage.begin()
    end(stage, start(stage, "default", new=True), ("Other.", 0.5), ("Another.", 0.7))
    assert stage.backend.take_notices()[0].state == "staged"
    assert file.read_text("utf-8") == EDIT


def test_install_skill_replaces_the_adopted_edit_without_force(stage: Stage, file: Path) -> None:
    file.write_text(EDIT, encoding="utf-8")
    run = start(stage, install="ask")
    end(stage, run, ("Be short.", 0.5), ("Be very short.", 0.7))
    dry = stage.backend.install_skill(InstallOrder(run_id=run.id, dry_run=True))
    assert "-Be short." in dry[0].diff
    assert file.read_text("utf-8") == EDIT
    [done] = stage.backend.install_skill(InstallOrder(run_id=run.id))
    assert (done.action, done.installation.version) == ("replaced", 3)
    assert "stays as version 2" in done.visibility


def test_a_request_that_an_earlier_version_stored_is_read(stage: Stage) -> None:
    stored = start(stage, "default", random_seed=5, new=True).request.model_dump(mode="json")
    del stored["adopted"]
    stored["seed"] = stored.pop("random_seed")
    request = RunRequest.model_validate(stored)
    assert (request.random_seed, request.adopted) == (5, None)
