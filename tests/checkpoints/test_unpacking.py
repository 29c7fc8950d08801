"""Archives that are cut, bent, or made to harm: refused in bounded memory, and nothing is left."""

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints.conftest import block, contents, packed, tar_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stash_mcp.checkpoints import Origin, pack, unpack
from stash_mcp.errors import CheckpointError

GIGABYTE = 1024**3
END = bytes(1024)


def refusal(data: bytes, folder: Path) -> CheckpointError:
    """What is said of an archive of these bytes; after it the folder is as it was."""
    archive = folder / "model.tar.gz"
    archive.write_bytes(data)
    before = sorted(folder.rglob("*"))
    with pytest.raises(CheckpointError) as caught:
        unpack(archive, folder / "inside" / "into")
    assert sorted(folder.rglob("*")) == before
    assert str(archive) in caught.value.problem
    assert ".stash-skills-" not in caught.value.problem
    return caught.value


@pytest.fixture
def good(checkpoint: Path, tmp_path: Path) -> bytes:
    pack(checkpoint, tmp_path / "made" / "good.tar.gz")
    return (tmp_path / "made" / "good.tar.gz").read_bytes()


# --- damaged ---


def test_an_archive_that_is_cut_anywhere_is_damaged(good: bytes, tmp_path: Path) -> None:
    near_the_end = range(len(good) - 24, len(good))
    for length in [*range(2, len(good) - 24, 23), *near_the_end]:
        error = refusal(good[:length], tmp_path)
        assert "is not a whole tar.gz file" in error.problem
        assert "is damaged: fetch it again" in error.fix


def test_no_bent_byte_gets_into_a_model(checkpoint: Path, good: bytes, tmp_path: Path) -> None:
    archive, expected, refused = tmp_path / "bent.tar.gz", contents(checkpoint), 0
    for place in range(len(good)):
        bent = bytearray(good)
        bent[place] ^= 1 << place % 8
        archive.write_bytes(bent)
        into = tmp_path / f"into-{place}"
        # A few bits say nothing: when it was made, or the length of a code that is not used.
        try:
            taken = contents(unpack(archive, into))
        except CheckpointError:
            refused += 1
            assert not into.exists()
        else:
            assert taken == expected
    assert refused > 0.8 * len(good)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda tar: packed(tar) + b"garbage",
        lambda tar: packed(tar + b"x"),
        lambda tar: packed(tar + bytes(2 * 1024**2)),
        lambda tar: packed(tar.rstrip(b"\0")),
        lambda tar: packed(tar[: len(tar) // 512 // 2 * 512]),
        lambda tar: packed(tar) + packed(tar),
    ],
    ids=["garbage", "after the end", "endless end", "no end", "half", "twice"],
)
def test_what_does_not_end_where_it_should_is_damaged(
    checkpoint: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    error = refusal(spoil(tar_of(checkpoint)), tmp_path)
    assert "is not a whole tar.gz file" in error.problem
    assert "fetch it again" in error.fix


def test_padding_and_several_parts_of_gzip_are_no_damage(checkpoint: Path, tmp_path: Path) -> None:
    tar = tar_of(checkpoint)
    archive = tmp_path / "parts.tar.gz"
    archive.write_bytes(packed(tar[:1000]) + packed(tar[1000:] + bytes(20_480)) + bytes(100))
    assert contents(unpack(archive, tmp_path / "into")) == contents(checkpoint)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_tar_and_long_names_are_read(
    checkpoint: Path, tmp_path: Path, form: int
) -> None:
    long = f"{'folder-' * 9}x/{'name-' * 12}y.json"
    if form != tarfile.USTAR_FORMAT:
        long = f"{'deep/' * 30}ü-{'name-' * 20}.json"
    info = tarfile.TarInfo(f"m/{long}")
    info.size, info.mtime = 2, 1.5 if form == tarfile.PAX_FORMAT else 1
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(packed(tar_of(checkpoint, (info, b"{}"), form=form)))
    folder = unpack(archive, tmp_path / "into")
    assert (folder / long).read_bytes() == b"{}"
    assert (folder / "config.json").read_bytes() == (checkpoint / "config.json").read_bytes()


# --- bombs ---

ZEROS = bytes(32 * 1024**2)


@pytest.mark.parametrize("kind", [b"x", b"X", b"g", b"L", b"K"])
@pytest.mark.parametrize("claimed", [3 * GIGABYTE, len(ZEROS), -1])
def test_a_header_that_claims_gigabytes_is_refused_unread(
    tmp_path: Path, kind: bytes, claimed: int
) -> None:
    data = packed(block("m/h", kind, claimed) + ZEROS)
    tracemalloc.start()
    try:
        error = refusal(data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"a header of {claimed:,} bytes, 'm/h', which no reward model needs" in error.problem
    assert peak < 4 * 1024**2


def sparse_pax() -> bytes:
    record = b"22 GNU.sparse.major=1\n"
    return block("h", b"x", len(record)) + record.ljust(512, b"\0") + block("m/a.json", b"0", 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (ZEROS, "goes on after its end"),
        (
            block("m/model.safetensors", b"0", 3 * GIGABYTE) + ZEROS,
            "'m/model.safetensors', its member 1, it is 3,221,225,472 bytes",
        ),
        (block("m/a.json", b"5", 3 * GIGABYTE) + ZEROS, "not a whole tar.gz file"),
        (
            b"".join(block(f"m/{n}.json", b"0", 0) for n in range(300)),
            "'m/256.json', its member 257, it is 0 bytes",
        ),
        (b"".join(block(f"m/._{n}", b"0", 0) for n in range(2000)), "its member 1,025, it"),
        (block("m", b"5", 0) * 2000, "its member 1,025, it"),
        (block("h", b"L", 3) + b"m/a".ljust(512, b"\0") + block("h", b"x", 0) * 2000, "no member"),
        (block("m/a.json", b"S", GIGABYTE) + ZEROS, "neither a plain file nor a folder"),
        (sparse_pax(), "neither a plain file nor a folder"),
        (block("m/a.json", b"0", -5), "no number"),
        (block("h", b"g", 17) + b"17 path=/etc/abc\n".ljust(512, b"\0"), "all members one name"),
        (block("h", b"x", 17) + b"99 path=/etc/abc\n".ljust(512, b"\0"), "cannot be read"),
        (block("h", b"x", 12) + b"12 size=-12\n".ljust(512, b"\0") + block("a", b"0", 1), "number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bomb_is_refused_before_it_grows(tmp_path: Path, data: bytes, said: str) -> None:
    bomb = packed(data + END)
    tracemalloc.start()
    try:
        error = refusal(bomb, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said in error.problem
    assert peak < 12 * 1024**2


def test_what_unpacks_to_far_more_than_it_is_gets_no_place_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stash_mcp.checkpoints.unpacking._FREE_GROWTH_BYTES", 1024**2)
    written = block("m/model.safetensors", b"0", len(ZEROS)) + ZEROS + END
    assert "holds more than a reward model does" in refusal(packed(written), tmp_path).problem


# --- names ---


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("m/CON", "Windows keeps for a device"),
        ("m/aux.json", "Windows keeps for a device"),
        ("m/Lpt1 .txt", "Windows keeps for a device"),
        ("m/nul/a.json", "Windows keeps for a device"),
        ("m/a.json.", "ends with a dot or a blank"),
        ("m/sub /a.json", "ends with a dot or a blank"),
        ("m/a\n.json", "characters"),
        ("m/\x1b[31m.json", "characters"),
        ("m/\udcff.json", "characters"),
        ("m/a?.json", "characters"),
        (f"m/{'ü' * 128}", "longer than systems allow"),
        (f"m/{'a/' * 600}b", "longer than systems allow"),
        ("m/CONFIG.JSON", "beside 'm/config.json', which is the same on some systems"),
        ("m/config.json/vocab.txt", "beside 'm/config.json'"),
        ("m/./config.json", "twice"),
        ("m//config.json", "twice"),
    ],
)
def test_a_name_that_is_not_its_own_everywhere_is_refused_by_name(
    checkpoint: Path, tmp_path: Path, name: str, said: str
) -> None:
    data = packed(tar_of(checkpoint, (tarfile.TarInfo(name), b"")))
    error = refusal(data, tmp_path)
    assert said in error.problem
    assert repr(name)[1:40] in error.problem
    assert "Make the archive again" in error.fix


@pytest.mark.parametrize(
    ("first", "second"), [("é.json", "e\u0301.json"), ("ß.json", "SS.json"), ("ﬁ.json", "FI.json")]
)
def test_names_that_differ_in_their_unicode_form_alone_are_refused(
    checkpoint: Path, tmp_path: Path, first: str, second: str
) -> None:
    both = [(tarfile.TarInfo(f"m/{name}"), b"") for name in (first, second)]
    assert (
        "the same on some systems" in refusal(packed(tar_of(checkpoint, *both)), tmp_path).problem
    )


PARTS = st.sampled_from(
    ["..", ".", "", "m", "M", "a.json", "A.json", "nul", "C:", "a\\b", "ü", "~"]
)
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
KINDS = st.sampled_from([b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"S", b"\0", b"z"])


@given(st.lists(st.tuples(NAMES, KINDS), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_members_are_nothing_is_written_outside(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "../../outside"
            tar.addfile(info)
    refusal(packed(buffer.getvalue()), folder)


# --- what is said ---


def test_what_is_wrong_inside_is_told_of_the_archive_by_the_name_it_is_given(
    checkpoint: Path, tmp_path: Path
) -> None:
    (checkpoint / "reward_stats.json").write_text('{"mean": 0}')
    archive = tmp_path / "passing"
    archive.write_bytes(packed(tar_of(checkpoint)))
    with pytest.raises(CheckpointError) as caught:
        unpack(archive, tmp_path / "into", origin=Origin("The archive of stash:7", "stash:7"))
    assert caught.value.problem.startswith("reward_stats.json of stash:7 has no finite number")


def test_a_message_shows_no_name_without_end(tmp_path: Path) -> None:
    name = "m/" + "x" * 900 + ".json"
    assert len(refusal(packed(block(name[:99], b"2", 0) + END), tmp_path).problem) < 900
    assert gzip.decompress(packed(END)) == END
