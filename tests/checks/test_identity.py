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
    assert only(fast).detail.endswith("differs from the parent's in the machine code of 1 of 1")


def test_another_binary_fails(control: View) -> None:
    assert isinstance(control.outcome, Completed)
    other = msgspec.structs.replace(control.outcome, ran_fnv="0" * 16)
    result = only(replace(control, outcome=other))
    assert result.verdict == "fail"
    assert result.detail.startswith("expected the built binary to run, whose hash is ")
    assert result.detail.endswith(f"but the one that ran has {'0' * 16}")


def test_a_variant_may_launch_in_one_case_what_its_parent_launches(fast: View) -> None:
    result = only(replace(fast, parent=fast))
    assert (result.verdict, result.detail.partition(", ")[2]) == (
        "pass",
        "which in this case launches what fast launches",
    )


def relaunched(view: View, **changes: object) -> View:
    launches = tuple(msgspec.structs.replace(launch, **changes) for launch in view.bundle.launches)
    return replace(view, bundle=msgspec.structs.replace(view.bundle, launches=launches))


def test_one_kernel_launched_in_another_way_is_another_variant(fast: View) -> None:
    wider = relaunched(fast, block=(256, 1, 1))
    assert (only(replace(wider, parent=fast)).verdict, "configuration" in only(replace(wider, parent=fast)).detail) == (
        "pass",
        True,
    )
    fewer = relaunched(fast, args=fast.bundle.launches[0].args[:-1])
    assert only(replace(fewer, parent=fast)).detail.endswith("differs from the parent's in the arguments")


def test_machine_code_counts_and_not_its_name(fast: View) -> None:
    """Two names for the same instructions are one kernel; one name in two files may be two."""
    renamed = relaunched(fast, entry="copy")
    same = {"softmax_fast": "a" * 64, "copy": "a" * 64}
    one, other = build(fast), msgspec.structs.replace(build(fast), machine_code=same, binary_sha256="b")
    parent = replace(fast, build=msgspec.structs.replace(one, machine_code=same))
    assert only(replace(renamed, build=other, parent=parent)).detail.endswith("launches what fast launches")
    changed = msgspec.structs.replace(other, machine_code={"copy": "c" * 64})
    assert only(replace(renamed, build=changed, parent=parent)).detail.endswith("the machine code of 1 of 1")


def test_a_shared_launch_beside_another_one_is_ordinary(fast: View) -> None:
    """A merge kernel that both launch, after kernels of their own."""
    (launch,) = fast.bundle.launches
    own = msgspec.structs.replace(launch, entry="own")
    both = replace(fast, bundle=msgspec.structs.replace(fast.bundle, launches=(launch, own)))
    parent = replace(fast, bundle=msgspec.structs.replace(fast.bundle, launches=(launch, launch)))
    assert only(replace(both, parent=parent)).detail.endswith("the machine code of 1 of 2")


def test_an_earlier_self_may_be_the_same(fast: View) -> None:
    other = msgspec.structs.replace(build(fast), key="k", binary_sha256="b")
    assert only(replace(fast, parent=replace(fast, build=other, revision="a" * 40))).verdict == "pass"
    same_sources = replace(fast, revision="a" * 40)
    assert only(replace(fast, parent=same_sources)).detail == "built from the same sources as aaaaaaaaaaaa"
    # A comment changed, say: another build of the same machine code.
    rebuilt = msgspec.structs.replace(build(fast), key="k")
    result = only(replace(fast, parent=replace(fast, build=rebuilt, revision="a" * 40)))
    assert (result.verdict, result.detail) == (
        "pass",
        "built from the same machine code, from other sources, as aaaaaaaaaaaa",
    )
    assert only(replace(fast, parent=replace(fast, build=rebuilt))).detail.endswith("launches what fast launches")


def test_a_parent_that_was_not_built_is_inconclusive(fast: View) -> None:
    assert fast.parent
    assert only(replace(fast, parent=replace(fast.parent, build=None))).verdict == "inconclusive"


def test_what_did_not_complete_is_left_to_completion(fast: View) -> None:
    assert list(identity(replace(fast, outcome=Crashed("assert", "", 0.1)))) == []
