"""`pytest --audit`: the project's default plan as tests, one for each variant in each case.

A case's variants share its inputs, references and parents' bytes, so the first test of a case runs all that were
selected in it; with pytest-xdist add `--dist loadgroup`, which keeps a case on one worker. Code of the project runs in
a process of its own (`audit.pytest_worker`), so that nothing there ends pytest. Nothing of the tool is imported here
until `--audit` is given: ordinary test runs pay for this file alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from audit.plan import Plan
    from audit.project import Project
    from audit.pytest_worker import PytestWorker
    from audit.records.run import Audit
    from audit.spec import Case

_FILE = "pyproject.toml"
_USAGE = 2  # as of `audit.cli.exit_codes`
_TIME_LIMIT = 120.0  # seconds, for one variant in one case


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("kernel-audit")
    group.addoption("--audit", action="store_true", help="Audit the default plan: one test a variant and case.")
    group.addoption(
        "--audit-shape",
        action="append",
        default=[],
        metavar="SHAPE",
        help="Audit only this shape (again for more; default: all).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the project's file, alone or beside the paths on the command line."""
    if not config.getoption("--audit"):
        return
    file = str(_project(config).root / _FILE)
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [file]
    elif not any(_FILE in arg for arg in config.args):
        config.args = [*config.args, file]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the plan from the project's file."""
    config = parent.config
    if config.getoption("--audit") and file_path.name == _FILE and file_path == _project(config).root / _FILE:
        collector: pytest.Collector = AuditFile.from_parent(parent, path=file_path)
        return collector
    return None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A project that cannot be audited is no failed test: the exit code is that of a usage error of `audit`."""
    if session.stash.get(_UNUSABLE, False):
        session.exitstatus = _USAGE


class AuditFile(pytest.File):
    """The plans of all selected shapes."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item a case and variant; variants of a case one after the other, parents first."""
        from audit.errors import AuditError
        from audit.printable import printable

        try:
            plans = _worker(self.config).plans(self.config.getoption("--audit-shape"), _TIME_LIMIT)
        except AuditError as error:
            raise self.CollectError(printable(str(error))) from None
        for plan in plans:
            for case in plan.cases:
                for variant in plan.variants:
                    # Without brackets, which pytest takes for parameters: `--lf` would not know the test again.
                    yield AuditItem.from_parent(
                        self, name=f"{variant.label}/{case.id}", plan=plan, case=case, variant=variant.label
                    )


class AuditItem(pytest.Item):
    """One variant in one case."""

    def __init__(self, *, plan: Plan, case: Case, variant: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.plan = plan
        self.case = case
        self.variant = variant
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(case.id))

    def runtest(self) -> None:
        """Raises AuditFailure unless every check passed."""
        audit = self._audits()[self.variant]
        self.user_properties.append(("seconds", audit.seconds))
        if audit.verdict != "pass":
            raise AuditFailure(self, audit)

    def _audits(self) -> dict[str, Audit]:
        """The audits of its case. An error that the user has to mend is remembered for the exit code."""
        from audit.errors import AuditError

        try:
            return _audits(self)
        except AuditError:
            self.session.stash[_UNUSABLE] = True
            raise

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The checks that did not pass, or what the user has to fix; for any other exception the traceback."""
        from audit.errors import AuditError
        from audit.printable import printable

        if isinstance(excinfo.value, AuditFailure | AuditError):
            return printable(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file that declares it, and its name."""
        return self.path, None, self.name


class AuditFailure(Exception):
    """Some check of a variant did not pass; the text names each check, with its measured value and limit."""

    def __init__(self, item: AuditItem, audit: Audit) -> None:
        lines = [f"{audit.verdict}: {audit.variant} in {audit.case}"]
        for result in audit.results:
            if result.verdict == "pass":
                continue
            step = f" (step {result.step})" if result.step else ""
            lines.append(f"  {result.verdict} {result.check}{step}: {result.detail}")
            if result.measured and result.limit:
                lines.append(f"    measured {result.measured.text}, limit {result.limit.text}")
            if result.where:
                lines.append(f"    at {result.where}")
        super().__init__("\n".join([*lines, f"again: {_again(item)}"]))


def _again(item: AuditItem) -> str:
    return f'pytest --audit --audit-shape {item.plan.shape} "{item.nodeid}"'


_PROJECT = pytest.StashKey["Project"]()
_WORKER = pytest.StashKey["PytestWorker"]()
_UNUSABLE = pytest.StashKey[bool]()
_AUDITS = pytest.StashKey["dict[str, dict[str, Audit]]"]()


def _project(config: pytest.Config) -> Project:
    if _PROJECT not in config.stash:
        from audit.errors import AuditError
        from audit.printable import printable
        from audit.project import find_project

        try:
            config.stash[_PROJECT] = find_project(config.rootpath)
        except AuditError as error:
            raise pytest.UsageError(printable(f"--audit: {error}")) from None
    return config.stash[_PROJECT]


def _worker(config: pytest.Config) -> PytestWorker:
    """The process that runs the project's code; it ends with the session."""
    if _WORKER not in config.stash:
        from audit.pytest_worker import PytestWorker

        config.stash[_WORKER] = worker = PytestWorker(_project(config).root)
        config.add_cleanup(worker.end)
    return config.stash[_WORKER]


def _audits(item: AuditItem) -> dict[str, Audit]:
    """The audits of an item's case, by variant: of all variants that this run selected in the case, run once."""
    by_case = item.session.stash.setdefault(_AUDITS, {})
    if item.case.id not in by_case:
        selected = [
            each.variant for each in item.session.items if isinstance(each, AuditItem) and each.case.id == item.case.id
        ]
        found = _worker(item.config).audits(item.plan.shape, item.case.id, selected)
        by_case[item.case.id] = {audit.variant: audit for audit in found}
    return by_case[item.case.id]
