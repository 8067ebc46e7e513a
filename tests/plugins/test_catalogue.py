"""The scan: what it finds, what it folds, and what cannot stop it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openheim.plugins.catalogue import Catalogue, scan
from openheim.plugins.first_party import FIRST_PARTY, distribution_of
from tests.plugins.distributions import make_distribution, make_tool_distribution


def found(catalogue: Catalogue) -> list[tuple[str, str, str]]:
    return [(candidate.kind, candidate.name, candidate.distribution) for candidate in catalogue.candidates]


def test_finds_every_kind_and_imports_nothing(tmp_path: Path) -> None:
    kinds = ("plugins", "gates", "transports", "tools", "embeddings", "providers")
    make_distribution(
        tmp_path,
        "oh-all",
        "2.5",
        entry_points={f"openheim.{kind}": ["thing = no_such_module_at_all:plugin"] for kind in kinds},
        requires=["openheim-core>=0.1", 'x; extra == "y"'],
        summary="Brings everything",
    )
    catalogue = scan([str(tmp_path)])
    assert [candidate.kind for candidate in catalogue.candidates] == list(reversed(kinds))
    candidate = catalogue.candidates[0]
    assert candidate.value == "no_such_module_at_all:plugin"
    assert (candidate.distribution, candidate.version, candidate.summary) == ("oh-all", "2.5", "Brings everything")
    assert candidate.requires == ("openheim-core>=0.1", 'x; extra == "y"')
    assert Path(candidate.location) == tmp_path
    assert candidate.editable is None
    assert catalogue.problems == ()
    assert "no_such_module_at_all" not in sys.modules


def test_distributions_without_our_groups_are_not_read(tmp_path: Path) -> None:
    info = make_distribution(tmp_path, "other", entry_points={"console_scripts": ["x = y:z"]})
    (info / "METADATA").write_bytes(b"\xff\xfe not text")
    catalogue = scan([str(tmp_path)])
    assert catalogue.candidates == ()
    assert catalogue.problems == ()


def test_a_distribution_seen_twice_counts_once(tmp_path: Path) -> None:
    for place, version in (("first", "1.0"), ("second", "2.0")):
        make_distribution(tmp_path / place, "oh_Twice.x", version, entry_points={"openheim.tools": [f"{place} = m"]})
    path = [str(tmp_path / "first"), str(tmp_path / "first"), str(tmp_path / "second")]
    assert found(scan(path)) == [("tools", "first", "oh_Twice.x")]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", None),
        ("METADATA", b""),
        ("METADATA", b"\xff\xfe\x00"),
        ("METADATA", b"Name: oh-broken\n"),
        ("entry_points.txt", b"[openheim.tools]\nno equals sign here\n"),
    ],
)
def test_broken_metadata_is_named_and_passed_over(tmp_path: Path, file: str, content: bytes | None) -> None:
    make_tool_distribution(tmp_path, "oh-good", "good")
    info = make_tool_distribution(tmp_path, "oh-broken", "broken")
    if content is None:
        (info / file).unlink()
    else:
        (info / file).write_bytes(content)
    catalogue = scan([str(tmp_path)])
    assert found(catalogue) == [("tools", "good", "oh-good")]
    (problem,) = catalogue.problems
    assert str(tmp_path) in problem


def test_what_is_no_text_or_no_folder_is_passed_over(tmp_path: Path) -> None:
    make_tool_distribution(tmp_path, "oh-good", "good")
    info = make_tool_distribution(tmp_path, "oh-binary", "binary")
    (info / "entry_points.txt").write_bytes(b"\xff\xfe[openheim.tools]")
    (tmp_path / "oh_file-1.0.dist-info").write_text("a file where a folder should be")
    assert found(scan([str(tmp_path), str(tmp_path / "gone"), ""])) == [("tools", "good", "oh-good")]


def test_groups_of_an_unknown_kind_are_named(tmp_path: Path) -> None:
    make_distribution(tmp_path, "oh-slip", entry_points={"openheim.tool": ["x = m"]})
    catalogue = scan([str(tmp_path)])
    assert catalogue.candidates == ()
    assert catalogue.problems == ("oh-slip 1.0 has plugins of an unknown kind: openheim.tool",)


def test_an_editable_install_shows_its_folder(tmp_path: Path) -> None:
    info = make_tool_distribution(tmp_path, "oh-edit", "edit")
    direct = info / "direct_url.json"
    direct.write_text('{"url": "file:///home/me/my%20plugin", "dir_info": {"editable": true}}')
    assert scan([str(tmp_path)]).candidates[0].editable == "/home/me/my plugin"
    direct.write_text('{"url": "file:///home/me/plugin", "dir_info": {}}')
    assert scan([str(tmp_path)]).candidates[0].editable is None
    direct.write_text("not JSON")
    assert scan([str(tmp_path)]).candidates[0].editable is None


def test_order_does_not_depend_on_the_disk(tmp_path: Path) -> None:
    for name in ("oh-c", "oh-a", "oh-b"):
        make_tool_distribution(tmp_path / name, name, "same")
    folders = [str(tmp_path / name) for name in ("oh-c", "oh-a", "oh-b")]
    assert found(scan(folders)) == found(scan(folders[::-1])) == [("tools", "same", f"oh-{letter}") for letter in "abc"]


def test_what_a_name_may_mean(tmp_path: Path) -> None:
    make_distribution(
        tmp_path, "oh-one", entry_points={"openheim.providers": ["x = m"], "openheim.embeddings": ["x = m"]}
    )
    make_distribution(tmp_path, "Oh.Two", entry_points={"openheim.tools": ["y = m"]})
    catalogue = scan([str(tmp_path)])

    def keys(reference: str) -> list[str]:
        return [candidate.dotted for candidate in catalogue.matching(reference)]

    assert keys("x") == ["providers.x", "embeddings.x"]
    assert keys("providers.x") == keys("providers:x") == ["providers.x"]
    assert keys("oh_two") == keys("y") == ["tools.y"]
    assert keys("tools.x") == []


def test_the_table_of_first_party_plugins() -> None:
    assert distribution_of("providers", "anthropic") == "openheim-provider-anthropic"
    assert distribution_of("transports", "web") == "openheim-transport-gateway"
    assert distribution_of("tools", "nobody") is None
    installed = [candidate for candidate in scan().candidates if candidate.first_party]
    assert installed
    for candidate in installed:
        assert FIRST_PARTY[candidate.kind][candidate.name] == candidate.distribution
