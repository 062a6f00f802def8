"""Identity: what ran is what was built, and no variant is compared with itself."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from audit.backends.outcome import Completed, Crashed
from audit.checks import Result, View
from audit.checks.identity import identity
from audit.compile.identity import BuildIdentity


def only(view: View) -> Result:
    (result,) = identity(view)
    return result


def build(view: View) -> BuildIdentity:
    assert view.build
    return view.build


def test_the_binary_that_ran_is_the_one_that_was_built(control: View, fast: View) -> None:
    assert (only(control).verdict, only(fast).verdict) == ("pass", "pass")
    assert "entries softmax_fast against softmax_control" in only(fast).detail


def test_another_binary_fails(control: View) -> None:
    assert isinstance(control.outcome, Completed)
    other = msgspec.structs.replace(control.outcome, ran_fnv="0" * 16)
    result = only(replace(control, outcome=other))
    assert result.verdict == "fail"
    assert result.detail.startswith("expected the built binary to run, whose hash is ")
    assert result.detail.endswith(f"but the one that ran has {'0' * 16}")


def test_a_parent_that_is_the_same_fails(fast: View) -> None:
    result = only(replace(fast, parent=fast))
    assert result.verdict == "fail"
    assert result.detail == "compared with itself: parent fast has the same binary and entry point and build"


def test_an_earlier_self_may_share_its_names_and_nothing_else(fast: View) -> None:
    other = msgspec.structs.replace(build(fast), key="k", binary_sha256="b")
    assert only(replace(fast, parent=replace(fast, build=other, revision="a" * 40))).verdict == "pass"
    assert only(replace(fast, parent=replace(fast, build=other))).verdict == "fail"
    same_sources = replace(fast, revision="a" * 40)
    assert only(replace(fast, parent=same_sources)).detail == "built from the same sources as aaaaaaaaaaaa"
    # A comment changed, say: another build of the same machine code.
    rebuilt = msgspec.structs.replace(build(fast), key="k")
    result = only(replace(fast, parent=replace(fast, build=rebuilt, revision="a" * 40)))
    assert (result.verdict, result.detail) == (
        "pass",
        "built from the same machine code, from other sources, as aaaaaaaaaaaa",
    )
    assert only(replace(fast, parent=replace(fast, build=rebuilt))).verdict == "fail"


def test_a_parent_that_was_not_built_is_inconclusive(fast: View) -> None:
    assert fast.parent
    assert only(replace(fast, parent=replace(fast.parent, build=None))).verdict == "inconclusive"


def test_what_did_not_complete_is_left_to_completion(fast: View) -> None:
    assert list(identity(replace(fast, outcome=Crashed("assert", "", 0.1)))) == []
