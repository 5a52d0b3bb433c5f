"""JUnit XML as the schema that CI servers share has it, and as another program reads it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

SHAPES = {
    "testsuites": ({"name"}, {"tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests"}, {"failures", "errors", "skipped"}, {"properties", "testcase"}),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name", "classname"}, set(), {"failure", "error", "skipped"}),
    **dict.fromkeys(["failure", "error", "skipped"], ({"message", "type"}, set(), set())),
}
"""Element to the attributes that it has, those that it may have, and its children; as in Jenkins' junit-10.xsd."""


def read(content: bytes) -> ET.Element:
    """Return the document after a look at every rule of the schema."""
    root = ET.fromstring(content)  # noqa: S314 - what was written a moment before
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, allowed, children = SHAPES[element.tag]
        assert needed <= {*element.keys()} <= needed | allowed
        assert {child.tag for child in element} <= children
        if element.tag != "testsuite":
            continue
        assert [child.tag for child in element].count("properties") <= 1
        cases = element.findall("testcase")
        assert len(cases) == int(element.get("tests"))
        assert all(len(case) <= 1 for case in cases)
        for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(count)) == len(element.findall(f"testcase/{kind}"))
    assert int(root.get("tests")) == len(list(root.iter("testcase")))
    return root


def facts(suite: ET.Element) -> dict[str, str]:
    return {fact.get("name"): fact.get("value") for fact in suite.iter("property")}


def kinds(suite: ET.Element) -> dict[str, str]:
    return {case.get("name"): case[0].tag if len(case) else "passed" for case in suite.findall("testcase")}


def read_elsewhere(content: bytes) -> dict[tuple[str, str], str]:
    """Return how junitparser reads each test case, by suite and name; the test is skipped where it is not installed."""
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    suites = junitparser.JUnitXml.fromstring(content)
    return {
        (suite.name, case.name): next((type(result).__name__.lower() for result in case.result), "passed")
        for suite in suites
        for case in suite
    }
