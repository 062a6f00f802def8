"""Options that several commands share, each with one name and one help text."""

from __future__ import annotations

from pathlib import Path

import click

from audit.cli import completion

SHAPE = click.option(
    "--shape",
    metavar="SHAPE",
    shell_complete=completion.shapes,
    help="Use this shape, such as q6; may be left out where the project has one. `audit list` shows all.",
)
SHAPE_OR_ALL = click.option(
    "--shape",
    metavar="SHAPE",
    shell_complete=completion.shapes_or_all,
    help="Use this shape, such as q6, or `all` for a record of each; may be left out where the project has one. "
    "`audit list` shows them.",
)
VARIANTS = click.option(
    "--variant",
    "variants",
    metavar="NAME",
    multiple=True,
    shell_complete=completion.variants,
    help="Run only this variant and the parents it is compared with (again for more).",
)
CONTEXTS = click.option(
    "--context", "contexts", metavar="N", type=int, multiple=True, help="Use this value of the axis context."
)
AXES = click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Run only cases with this axis value; a value that no planned case has adds a case.",
)
SEEDS = click.option(
    "--seed", "seeds", metavar="N", type=int, multiple=True, help="Generate inputs with this seed (default: 1)."
)
DEVICE = click.option(
    "--device",
    default="host",
    show_default=True,
    type=click.Choice(["host", "cuda"]),
    help="Run kernels on this CPU or on a CUDA GPU.",
)
PROJECT = click.option(
    "--project",
    "project_folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Use the project of this folder or the nearest one above it (default: the current folder).",
)
OUT = click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path, resolve_path=True),
    default=None,
    help="Write records into this folder (default: the project's runs).",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
JSON_LINES = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object a shape on stdout, each on a line of its own, and nothing else.",
)
