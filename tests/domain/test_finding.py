"""What a check ends with follows from its findings, whichever check it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.finding import UNREACHABLE, Finding, Severity, exit_code
from skillgit.errors import ExitCode

FINDINGS = st.lists(
    st.builds(
        Finding, severity=st.sampled_from(Severity), rule=st.sampled_from(["leak", UNREACHABLE]), sentence=st.just("x")
    )
)


@given(FINDINGS, st.booleans())
def test_only_what_counts_as_an_error_fails_a_check(findings, strict):
    counting = [f for f in findings if f.severity is Severity.ERROR or (strict and f.severity is Severity.WARNING)]
    code = exit_code(findings, strict=strict)
    assert (code is ExitCode.OK) is (not counting)
    assert (code is ExitCode.SERVICE) is any(finding.rule == UNREACHABLE for finding in counting)


@given(FINDINGS)
def test_the_order_of_findings_decides_nothing(findings):
    assert exit_code(findings) is exit_code(findings[::-1])


def test_a_message_names_the_place_as_compilers_do():
    assert Finding(path="a.yaml", line=3, sentence="it is wrong").message == "a.yaml:3: it is wrong"
    assert Finding(sentence="it is wrong").message == "it is wrong"
    assert Finding(commit="c" * 40, line=2, sentence="it is wrong").place == "message:2"
