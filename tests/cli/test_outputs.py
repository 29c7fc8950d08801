"""Files that a command writes where the person says."""

from pathlib import Path

import pytest
from support.staging import Stage


@pytest.mark.parametrize("what", ["traces", "annotations", "model"])
def test_a_file_that_is_there_is_replaced_only_when_told(
    command, stage: Stage, tmp_path: Path, what: str
) -> None:
    stage.conversations()
    model = stage.trained()
    order = ("export-model", model.id) if what == "model" else ("export", what)
    file = tmp_path / "mine"
    file.write_text("mine", encoding="utf-8")
    said = command(*order, str(file))
    assert (said.code, said.out) == (1, "")
    words = " ".join(said.err.split())
    assert "is there already, and was left as it is." in words
    assert "--force" in words
    assert file.read_bytes() == b"mine"
    assert command(*order, str(file), "--force").code == 0
    assert file.read_bytes() != b"mine"
