"""The contract suites pass for plugins without a fault, and for each fault exactly the tests fail that are about it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from openheim.testing import EmbedderContract, ProviderContract, ToolsetContract

FOLDER = Path(__file__).parent
SUITES = FOLDER / "suites"

#: A child runs some hundreds of tests.
TIMEOUT_SECS = 180
pytestmark = pytest.mark.timeout(TIMEOUT_SECS)

#: Suite to the tests that fail in it; of a test with parameters, without them. ``...`` stands for all but the import's.
TOOLSETS: dict[str, set[str]] = {
    "TestGood": set(),
    "TestGoodWithoutSamples": set(),
    "TestNotCalledAtAll": set(),
    "TestUnknownSample": {"test_offers_tools"},
    "TestNone": {"test_offers_tools"},
    "TestBadName": {"test_offers_tools", "test_names_are_unique_and_fit_every_provider"},
    "TestTwoOfAName": {"test_offers_tools", "test_names_are_unique_and_fit_every_provider"},
    "TestNoDescription": {"test_descriptions_are_there"},
    "TestBadKind": {"test_offers_tools", "test_traits_have_legal_values"},
    "TestBadReplay": {"test_offers_tools", "test_traits_have_legal_values"},
    "TestBadSchema": {"test_offers_tools", "test_parameters_are_described_json_schema"},
    "TestUndescribedArgument": {"test_parameters_are_described_json_schema"},
    "TestNotAsync": {"test_traits_have_legal_values"},
    "TestChanging": {"test_tools_are_the_same_each_time"},
    "TestSampleFails": {"test_sample_calls_succeed"},
    "TestReturnsANumber": {
        "test_sample_calls_succeed",
        "test_results_fit_the_window",
        "test_the_event_loop_goes_on",
        "test_cancelling_ends_a_call",
        "test_nothing_is_left_behind",
        "test_calls_print_nothing",
    },
    "TestWholeFile": {"test_results_fit_the_window"},
    "TestReadsAnything": {"test_nothing_outside_is_touched"},
    "TestPathByFormat": {"test_nothing_outside_is_touched"},
    "TestPathByOptionalFormat": {"test_nothing_outside_is_touched"},
    "TestPathByName": {"test_nothing_outside_is_touched"},
    "TestPathsByName": {"test_nothing_outside_is_touched"},
    "TestPathByTarget": {"test_nothing_outside_is_touched"},
    "TestPathByDeclaration": {"test_nothing_outside_is_touched"},
    "TestPathByNothing": set(),
    "TestWritesAnywhere": {"test_nothing_outside_is_touched"},
    "TestTargetAsWritten": {"test_targets_are_canonical"},
    "TestNoTarget": {"test_targets_are_canonical"},
    "TestMadeUpArguments": {"test_unknown_arguments_do_no_harm"},
    "TestOneAtATime": {"test_calls_at_a_time_do_not_mix"},
    "TestNeverCancelled": {"test_cancelling_ends_a_call"},
    "TestLeavesAProcess": {"test_cancelling_ends_a_call"},
    "TestLeaksDescriptors": {"test_nothing_is_left_behind"},
    "TestLeaksThreads": {"test_nothing_is_left_behind"},
    "TestSleepsOnTheLoop": {"test_the_event_loop_goes_on"},
    "TestWorksOnTheLoop": {"test_the_event_loop_goes_on"},
    "TestBlocksWhereItIsSlow": {"test_the_event_loop_goes_on"},
    "TestSleepsInAThread": set(),
    "TestSamplesThatAreSetUp": set(),
    "TestSamplesThatFail": {"test_sample_calls_succeed", "test_calls_at_a_time_do_not_mix"},
    "TestPrints": {"test_calls_print_nothing"},
    "TestForgetsSessions": {"test_sessions_can_be_closed"},
    "TestReadsAndEdits": {"test_traits_fit_together"},
    "TestWritesAgain": {"test_traits_fit_together"},
    "TestLaxSchema": {"test_wrong_arguments_are_refused"},
    "TestOddValuesCrash": {"test_odd_arguments_do_no_harm", "test_read_only_tools_change_nothing"},
    "TestNotReadOnly": {"test_read_only_tools_change_nothing"},
    "TestHeavy": {"test_import_is_cheap"},
    "TestNoisy": {"test_import_does_nothing_else"},
    "TestAsyncHook": {"..."},
    "TestWrongArgument": {"..."},
}

#: Of suites whose tools take their time in each call: the tests about that, and one that shows that the tools work.
SLOW = {
    "TestNeverCancelled": ("test_sample_calls_succeed", "test_cancelling_ends_a_call"),
    "TestSleepsOnTheLoop": ("test_sample_calls_succeed", "test_the_event_loop_goes_on"),
    "TestWorksOnTheLoop": ("test_sample_calls_succeed", "test_the_event_loop_goes_on"),
    "TestBlocksWhereItIsSlow": ("test_sample_calls_succeed", "test_the_event_loop_goes_on"),
    "TestSleepsInAThread": ("test_sample_calls_succeed", "test_the_event_loop_goes_on"),
}

PROVIDERS: dict[str, set[str]] = {
    "TestGood": set(),
    "TestGoodOffline": set(),
    "TestPickyInWords": set(),
    "TestListsModels": set(),
    "TestNoToolCalls": {"test_tool_calls_are_complete"},
    "TestBlankModel": {"test_members"},
    "TestOddFinish": {"test_reply_has_legal_shape", "test_odd_conversations"},
    "TestNegativeUsage": {"test_reply_has_legal_shape", "test_odd_conversations"},
    "TestNoUsage": {"test_reply_has_legal_shape"},
    "TestRewording": {"test_deltas_make_the_reply", "test_calls_at_a_time_do_not_mix"},
    "TestNoCallIds": {"test_tool_calls_are_complete"},
    "TestForgetsFinish": {"test_tool_calls_are_complete"},
    "TestNamesAsModels": {"test_models_are_listed"},
    "TestMutating": {"test_request_is_left_alone"},
    "TestUnstable": {"test_same_request_gives_the_same_bytes", "test_what_was_sent_before_is_sent_again"},
    "TestShared": {"test_calls_at_a_time_do_not_mix"},
    "TestClosesOnce": {"test_closing_twice_is_harmless"},
    "TestNeverWaits": {"test_cancelled_before_it_starts"},
    "TestGoesOn": {"test_cancelled_in_the_middle", "test_cancelling_waits_for_nothing"},
    "TestLeaksErrors": {"test_failures_are_provider_errors", "test_errors_are_classified"},
    "TestQuotesTheService": {"test_failures_are_provider_errors", "test_errors_are_classified"},
    "TestTakesItForAnAnswer": {"test_failures_are_provider_errors", "test_errors_are_classified"},
    "TestPicky": {
        "test_odd_conversations",
        "test_request_is_left_alone",
        "test_same_request_gives_the_same_bytes",
    },
    "TestCountsTwice": {"test_usage_is_what_the_service_counted"},
    "TestSlipsInTake": {"test_nothing_is_skipped"},
    "TestHoldsBack": {"test_pieces_are_passed_on_as_they_come"},
    "TestThinksInChunks": {"test_bytes_may_be_cut_anywhere", "test_pieces_are_passed_on_as_they_come"},
    "TestLeavesSlowly": {"test_cancelling_waits_for_nothing"},
    "TestTellsNothingApart": {"test_errors_are_classified"},
    "TestSendsForeignSignatures": {"test_signatures_stay_with_their_wire", "test_signatures_stay_with_their_entry"},
    "TestSendsAnotherEntrysSignatures": {"test_signatures_stay_with_their_entry"},
    "TestKeyInUrl": {"test_key_goes_into_a_header"},
    "TestLooksUp": {"test_creating_and_calling_opens_nothing_of_its_own"},
    "TestCountsMessages": {"test_what_was_sent_before_is_sent_again"},
    "TestWritesNaN": {"test_odd_conversations"},
    "TestHeavyProvider": {"test_creating_is_cheap"},
    "TestShowsItsKey": {"test_key_does_not_show"},
    "TestLogsItsKey": {"test_key_does_not_show", "test_failures_are_provider_errors"},
}

EMBEDDERS: dict[str, set[str]] = {
    "TestGood": set(),
    "TestGoodOffline": set(),
    "TestNotAsync": {"test_members"},
    "TestReverses": {"test_one_vector_for_each_text_in_order", "test_many_texts"},
    "TestForgetsItsDimension": {"test_dimension_is_told", "test_the_size_stays"},
    "TestAsksForNothing": {"test_no_texts_have_no_vectors"},
    "TestSendsBlanks": {"test_blank_texts_are_refused"},
    "TestSendsAllAtOnce": {"test_many_texts"},
    "TestCrashesOnOddTexts": {"test_odd_texts"},
    "TestTakesAnything": {"test_wrong_vectors_are_an_error", "test_the_size_stays"},
    "TestForgetsItsSize": {"test_the_size_stays"},
    "TestLeaksErrors": {"test_failures_are_provider_errors", "test_errors_are_classified"},
    "TestTellsNothingApart": {"test_errors_are_classified"},
    "TestQuotesTheService": {"test_failures_are_provider_errors"},
    "TestNeverWaits": {"test_cancelled_before_it_starts"},
    "TestLeavesItOpen": {"test_cancelled_in_the_middle"},
    "TestMixes": {"test_calls_at_a_time_do_not_mix"},
    "TestShowsItsKey": {"test_key_does_not_show"},
}


class Kind(NamedTuple):
    """A contract, with the file that has its suites.

    Args:
        parts: how many children share the suites, so that workers which run tests at a time share the work.
    """

    contract: type
    file: Path
    expected: dict[str, set[str]]
    parts: int

    @property
    def tests(self) -> set[str]:
        return {name for name in dir(self.contract) if name.startswith("test_")}

    def failures(self, suite: str) -> set[str]:
        if self.expected[suite] == {"..."}:
            return {test for test in self.tests if not test.startswith("test_import")}
        return self.expected[suite]


KINDS = {
    "toolsets": Kind(ToolsetContract, SUITES / "toolset_suites.py", TOOLSETS, 2),
    "providers": Kind(ProviderContract, SUITES / "provider_suites.py", PROVIDERS, 2),
    "embedders": Kind(EmbedderContract, SUITES / "embedder_suites.py", EMBEDDERS, 1),
}


def parts() -> Iterator[Any]:
    for name, kind in KINDS.items():
        for first in range(kind.parts):
            suites = list(kind.expected)[first :: kind.parts]
            yield pytest.param(kind, suites, id=f"{name}, {first + 1} of {kind.parts}")


def child_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "error",
            f"--rootdir={folder}",
            *arguments,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(FOLDER / "plugins"), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS - 10,
    )


def failures(file: Path, suites: list[str], folder: Path) -> tuple[dict[str, set[str]], str]:
    """Suite to the tests that failed in it, or could not be set up, with any of their parameters; and what was said."""
    report = folder / "report.xml"
    whole = [f"{file}::{suite}" for suite in suites if suite not in SLOW]
    selected = [f"{file}::{suite}::{test}" for suite in suites for test in SLOW.get(suite, ())]
    done = child_pytest(folder, f"--junitxml={report}", "--tb=line", *whole, *selected)
    assert report.is_file(), done.stdout + done.stderr
    failed: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        suite = case.get("classname", "").rpartition(".")[2]
        test = case.get("name", "").partition("[")[0]
        assert case.find("skipped") is None, f"{suite}.{test} is skipped, which says nothing"
        found = failed.setdefault(suite, set())
        if case.find("failure") is not None or case.find("error") is not None:
            found.add(test)
    return failed, done.stdout


@pytest.mark.parametrize(("kind", "suites"), [*parts()])
def test_suites(kind: Kind, suites: list[str], tmp_path: Path) -> None:
    failed, said = failures(kind.file, suites, tmp_path)
    assert failed == {suite: kind.failures(suite) for suite in suites}, said


@pytest.mark.parametrize("kind", [*KINDS.values()], ids=[*KINDS])
def test_every_suite_is_expected(kind: Kind) -> None:
    assert set(re.findall(r"^class (Test\w+)", kind.file.read_text(encoding="utf-8"), re.MULTILINE)) == {*kind.expected}


def test_every_test_can_fail() -> None:
    tests = {test for kind in KINDS.values() for test in kind.tests}
    assert tests == {test for kind in KINDS.values() for suite in kind.expected for test in kind.failures(suite)}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("def test_descriptions_are_there(self): pass", "replaces the inherited test_descriptions_are_there"),
        ("test_import_is_cheap = None", "replaces the inherited test_import_is_cheap"),
        (
            # The fault that has to be noticed: a mark without a reason.
            "@pytest.mark.xfail\n    def test_descriptions_are_there(self): pass",  # Reason: lacks one on purpose.
            "replaces the inherited test_descriptions_are_there",
        ),
        ("plugin = ''", "set plugin = 'your_package.plugin'"),
    ],
)
def test_inherited_tests_cannot_be_replaced_in_silence(tmp_path: Path, body: str, complaint: str) -> None:
    done = child_pytest(tmp_path, str(suite_file(tmp_path, body)))
    assert done.returncode != 0
    assert complaint in done.stdout


def test_an_inherited_test_may_be_expected_to_fail_with_a_reason(tmp_path: Path) -> None:
    body = (
        "@pytest.mark.xfail(reason='the model is told elsewhere')\n"
        "    def test_descriptions_are_there(self, tools):\n"
        "        super().test_descriptions_are_there(tools)"
    )
    file = suite_file(tmp_path, body, plugin="kit_toolsets:no_description")
    done = child_pytest(tmp_path, f"{file}::TestMine::test_descriptions_are_there")
    assert done.returncode == 0, done.stdout
    assert "1 xfailed" in done.stdout


def suite_file(folder: Path, body: str, *, plugin: str = "kit_toolsets:good") -> Path:
    path = folder / "test_mine.py"
    path.write_text(
        "import pytest\nfrom openheim.testing import ToolsetContract\n\n\n"
        f"class TestMine(ToolsetContract):\n    plugin = {plugin!r}\n    {body}\n",
        encoding="utf-8",
    )
    return path
