"""`audit diff`: two records side by side."""

from __future__ import annotations

from pathlib import Path

import click

from audit.cli.exit_codes import FINDINGS, INCONCLUSIVE, PASS
from audit.cli.terminal import echo
from audit.records.kind import taken_as_written
from audit.records.kinds import home_of, load_record
from audit.report import write_page
from audit.report.comparison import Direction, RecordComparison, compare_records, render_comparison

_SHOWN = 20


@click.command(name="diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write a page into this file, too."
)
def command(a: Path, b: Path, output: Path | None) -> None:
    """Show what changed from record A to record B, for worse or for better. Both are folders of one kind and shape.

    Exit 0 if nothing is worse, 1 if something is, 3 if the two records judge nothing in common.
    """
    homes = [home_of(path) for path in (a, b)]
    records = [load_record(home) for home in homes]
    with taken_as_written(*homes):
        found = compare_records(records[0], records[1], (homes[0].resolve().name, homes[1].resolve().name))
        page = render_comparison(found).encode() if output is not None else b""
    if output is not None:
        write_page(output, {output.name: page})
    echo(_text(found))
    raise click.exceptions.Exit(FINDINGS if found.of("worse") else PASS if found.common else INCONCLUSIVE)


def _text(found: RecordComparison) -> str:
    lines = []
    for letter, side in (("A", found.a), ("B", found.b)):
        lines.append(f"{letter}  {side.verdict:12} {side.name}, {side.started}, {side.commit[:12]}, {side.device}")
    directions: tuple[Direction, ...] = ("worse", "better", "other")
    for direction in directions:
        changes = found.of(direction)
        lines += [
            f"{direction:7} {each.group} {each.name}: {_short(each.before)} -> {_short(each.after)}"
            for each in changes[:_SHOWN]
        ]
        if len(changes) > _SHOWN:
            lines.append(f"{'':7} ... and {len(changes) - _SHOWN} more; the page that --output writes has them all")
    counts = ", ".join(f"{len(found.of(direction))} {direction}" for direction in directions)
    lines.append(f"{counts}, {found.same} the same" + ("" if found.common else "; nothing judged in common"))
    return "\n".join(lines)


def _short(text: str) -> str:
    """A sha256 by its first digits."""
    return text[:12] if len(text) == 64 and not text.strip("0123456789abcdef") else text
