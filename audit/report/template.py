"""The templates of all pages: everything that is put into one is escaped, and a missing name is an error."""

from __future__ import annotations

from functools import cache

import jinja2


@cache
def template(name: str) -> jinja2.Template:
    """The template of that name in the folder `templates`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("audit.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
