"""The verdict as JUnit XML: a test case for each condition. What fails is a failure, what is inconclusive an error."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from audit.gate.verdict import Condition, Gate
from audit.printable import printable


def junit(gate: Gate) -> str:
    """One `testsuites` with one `testsuite`, named after the policy."""
    counts = {
        "tests": str(len(gate.conditions)),
        "failures": str(gate.count("fail")),
        "errors": str(gate.count("inconclusive")),
        "skipped": "0",
        "time": "0",
    }
    suites = ET.Element("testsuites", {"name": "kernel-audit", **counts})
    suite = ET.SubElement(
        suites, "testsuite", {"name": f"gate {_plain(gate.policy)}", **counts, "timestamp": _plain(gate.started[:19])}
    )
    for condition in gate.conditions:
        _case(suite, gate, condition)
    if not gate.conditions:  # readers take a suite without tests for one that passed
        _case(suite, gate, Condition("conditions", "at least 1", "0", "inconclusive"))
        for element in (suites, suite):
            element.set("tests", "1")
            element.set("errors", "1")
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def _case(suite: ET.Element, gate: Gate, condition: Condition) -> None:
    case = ET.SubElement(
        suite, "testcase", {"name": _plain(condition.name), "classname": f"gate.{_plain(gate.policy)}", "time": "0"}
    )
    summary = _plain(f"measured {condition.measured}; required {condition.required}")
    reasons = _plain("\n".join(part for part in (condition.detail, condition.path) if part))
    if condition.verdict in ("fail", "inconclusive"):
        tag = "failure" if condition.verdict == "fail" else "error"
        ET.SubElement(case, tag, {"message": summary, "type": condition.verdict}).text = reasons
    else:
        ET.SubElement(case, "system-out").text = "\n".join(
            part for part in (condition.verdict, summary, reasons) if part
        )


def _plain(text: str) -> str:
    """The text with its control characters escaped, which XML could not hold either."""
    return printable(text)
