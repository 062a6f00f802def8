"""The templates of all pages: everything that is put into one is escaped, and a missing name is an error.

Control characters that reorder text (and all others that print nothing) are shown by their number: a name from evidence
cannot turn round what stands beside it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

import jinja2
import msgspec
from markupsafe import Markup

from audit import printable

_UNSAFE = re.compile("[<>&]")


@cache
def template(name: str) -> jinja2.Template:
    """The template of that name in the folder `templates`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("audit.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible_value,
    )
    script = _own("page.js")
    environment.globals |= {
        "style": Markup(_own("page.css")),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "json_block": json_block,
    }
    return environment.get_template(name)


def visible_value(value: object) -> object:
    """A value as it is put into a page: characters that nobody sees in a string become `\\u202e`."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable.visible(value)
    return value


def json_block(data: object) -> Markup:
    """Data as JSON that may stand inside of a script element: nothing in it can end the element."""
    text = printable.printable_json(msgspec.json.encode(data))
    return Markup(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _own(name: str) -> str:
    return (resources.files("audit.report") / "templates" / name).read_text(encoding="utf-8")
