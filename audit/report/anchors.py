"""Stable links into a page: what stands behind `#` is also the id of what it leads to."""

from __future__ import annotations

from urllib.parse import quote

_PLAIN = "/=,:@+"  # beside letters, digits and ._-~: what a fragment may hold as it is


def case_anchor(case: str) -> str:
    """`case=q6/seed1/context=33`: usual names stay readable, all else is percent-encoded."""
    return f"case={quote(case, safe=_PLAIN)}"


def finding_anchor(check: str, variant: str, case: str) -> str:
    """`finding=bytes/shared_kv/q6/seed1/context=33`."""
    return f"finding={quote(f'{check}/{variant}/{case}', safe=_PLAIN)}"


def closed_anchor(variant: str) -> str:
    """`closed=head_halves`."""
    return f"closed={quote(variant, safe=_PLAIN)}"
