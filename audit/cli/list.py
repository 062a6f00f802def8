"""`audit list`: what the project declares."""

from __future__ import annotations

from pathlib import Path

import click

from audit import plan as planning
from audit.capture.store import CaptureStore
from audit.cli import options
from audit.cli.terminal import echo, echo_json
from audit.project import Project, find_project


@click.command(name="list")
@options.PROJECT
@options.JSON
def command(project_folder: Path, as_json: bool) -> None:
    """Show every operator with its shapes, variants and default plans, and the captures."""
    project = find_project(project_folder)
    described: dict[str, object] = {
        "project": str(project.root),
        "operators": _operators(project),
        "captures": _captures(project),
    }
    if as_json:
        echo_json(described)
    else:
        echo(_text(project, described))


def _operators(project: Project) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for operator in project.operators.values():
        shapes = [shape for owner, shape in project.shapes().values() if owner is operator]
        plans = {
            shape.name: planning.make_plan(project, shape.name, planning.Selection(), arch="sm_90", time_limit=1)
            for shape in shapes
        }
        found.append(
            {
                "name": operator.name,
                "declared": str(project.declared_in(operator.name).relative_to(project.root)),
                "shapes": {name: [case.id for case in plan.cases] for name, plan in plans.items()},
                "families": {
                    name: list(dict.fromkeys(family for case in plan.cases for family in case.families))
                    for name, plan in plans.items()
                },
                "axes": {axis.name: axis.default for axis in operator.axes},
                "variants": [
                    {
                        "name": variant.name,
                        "parent": variant.parent,
                        "status": variant.status,
                        "source": variant.code.path,
                        "note": variant.note,
                        "why": variant.why,
                        "evidence": variant.evidence,
                    }
                    for variant in operator.variants
                ],
                "references": [reference.name for reference in operator.references],
                "bounds": [bound.name for bound in operator.bounds],
            }
        )
    return found


def _captures(project: Project) -> list[str]:
    return [ref.id for ref in CaptureStore(project.captures).list()] if project.captures else []


def _text(project: Project, described: dict[str, object]) -> str:
    lines = [f"project {project.root}"]
    operators = described["operators"]
    assert isinstance(operators, list)
    for operator, facts in zip(project.operators.values(), operators, strict=True):
        shapes = [shape.name for owner, shape in project.shapes().values() if owner is operator]
        declared = project.declared_in(operator.name).relative_to(project.root)
        lines += [f"\noperator {operator.name} ({declared})", f"  shapes      {', '.join(shapes)}"]
        lines.append(f"  axes        {', '.join(f'{axis.name}={axis.default}' for axis in operator.axes)}")
        lines.append(f"  references  {', '.join(reference.name for reference in operator.references) or 'none'}")
        lines.append(f"  bounds      {', '.join(bound.name for bound in operator.bounds) or 'none'}")
        if families := list(dict.fromkeys(name for found in facts["families"].values() for name in found)):
            lines.append(f"  families    {', '.join(families)}")
        lines.append("  variants")
        for variant in operator.variants:
            parent = f"parent {variant.parent}" if variant.parent else "no parent"
            lines.append(f"    {variant.name:18} {variant.status:13} {parent:18} {variant.code.path}")
            if variant.status == "closed":
                records = f" ({', '.join(variant.evidence)})" if variant.evidence else ""
                lines.append(f"{'':23}{variant.why}{records}")
    captures = described["captures"]
    assert isinstance(captures, list)
    lines.append(f"\ncaptures  {', '.join(captures) or 'none'}")
    return "\n".join(lines)
