"""`audit capture`: record a capture set from a live model by its recipe, or check that it is reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from audit.cli.exit_codes import FINDINGS
from audit.cli.terminal import echo
from audit.scratch import scratch_folder

if TYPE_CHECKING:
    from audit.capture.store import CaptureStore


@click.command("capture")
@click.argument("recipe", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write into this folder of capture sets (default: the one that holds the recipe's folder).",
)
@click.option("--check", is_flag=True, help="Record again and compare with the stored set; write nothing.")
@click.option("--replace", is_flag=True, help="Replace an existing set.")
def command(recipe: Path, out: Path | None, check: bool, replace: bool) -> None:
    """Record actual inputs of a live model, as RECIPE says.

    The set is a folder with the name that the recipe gives it. An existing set is overwritten only with --replace.
    With --check, exit 1 if a payload differs from the stored one, and print which.
    """
    if check and replace:
        raise click.UsageError("--check: expected it without --replace, but got both; --check writes nothing")
    from audit.capture.publish import publish, require_free
    from audit.capture.recipe import read_recipe
    from audit.capture.record import record_capture
    from audit.capture.store import CaptureStore
    from audit.errors import CaptureError
    from audit.records.folder import require_outside

    plan = read_recipe(recipe)
    root = out or recipe.resolve().parent.parent
    if out is None and recipe.resolve().parent.name != plan.name:
        raise CaptureError(
            f"{recipe}: name: expected the name of its folder, {recipe.resolve().parent.name!r}, but got "
            f"{plan.name!r}; rename one of them, or name the folder of capture sets with --out"
        )
    store = CaptureStore(root)
    if check:
        store.manifest(plan.name)
    else:
        require_outside(root, "another folder with --out")
        require_free(root / plan.name, replace=replace)
    made = record_capture(plan, recipe.resolve().parent, lambda line: echo(line, err=True))
    if check:
        with scratch_folder() as scratch:
            publish(scratch / plan.name, made.manifest, made.files)
            _report_check(store, CaptureStore(scratch), plan.name)
        return
    publish(root / plan.name, made.manifest, made.files, replace=replace)
    _report_set(store, plan.name)


def _report_check(stored: CaptureStore, again: CaptureStore, name: str) -> None:
    from audit.capture.compare import compare_sets

    differences = compare_sets(stored, again, name)
    for difference in differences:
        echo(str(difference))
    (old, _), (new, _) = stored.manifest(name), again.manifest(name)
    if old.environment != new.environment:
        echo(f"stored by {old.environment}, now {new.environment}")
    echo(f"{name}: {len(differences)} differences over {len(new.records)} captures")
    if differences:
        raise click.exceptions.Exit(FINDINGS)


def _report_set(store: CaptureStore, name: str) -> None:
    from audit.capture.facts import facts_table, measure

    echo(facts_table(tuple(measure(store.load(ref.id)) for ref in store.list() if ref.set == name)))
    for census in store.census():
        if census.set == name:
            echo(str(census))
