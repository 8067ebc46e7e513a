"""The toolset suite over each toolset of ``kit_toolsets``. Run by ``test_contracts`` in a child process."""

import gc

import pytest

from openheim.testing import ToolsetContract

SAMPLES = {"echo": {"text": "hello"}, "first_line": {"path": "README.md"}}


@pytest.fixture(scope="session", autouse=True)
def frozen():
    """The collector, which each suite runs, need not look through what pytest has collected."""
    gc.freeze()


class TestGood(ToolsetContract):
    plugin = "kit_toolsets:good"
    sample_calls = SAMPLES


class TestGoodWithoutSamples(ToolsetContract):
    plugin = "kit_toolsets:good"


class TestUnknownSample(ToolsetContract):
    plugin = "kit_toolsets:good"
    sample_calls = {"eecho": {"text": "hello"}}


class TestNone(ToolsetContract):
    plugin = "kit_toolsets:none"


class TestBadName(ToolsetContract):
    plugin = "kit_toolsets:bad_name"


class TestTwoOfAName(ToolsetContract):
    plugin = "kit_toolsets:two_of_a_name"


class TestNoDescription(ToolsetContract):
    plugin = "kit_toolsets:no_description"


class TestBadKind(ToolsetContract):
    plugin = "kit_toolsets:bad_kind"


class TestBadReplay(ToolsetContract):
    plugin = "kit_toolsets:bad_replay"


class TestBadSchema(ToolsetContract):
    plugin = "kit_toolsets:bad_schema"


class TestUndescribedArgument(ToolsetContract):
    plugin = "kit_toolsets:undescribed_argument"


class TestNotAsync(ToolsetContract):
    plugin = "kit_toolsets:not_async"


class TestChanging(ToolsetContract):
    plugin = "kit_toolsets:changing"


class TestSampleFails(ToolsetContract):
    plugin = "kit_toolsets:sample_fails"
    sample_calls = {"failing": {}}


class TestReturnsANumber(ToolsetContract):
    plugin = "kit_toolsets:returns_a_number"
    sample_calls = {"wrong_result": {}}


class TestLaxSchema(ToolsetContract):
    plugin = "kit_toolsets:lax_schema"
    sample_calls = {"lax": {"text": "hello"}}


class TestOddValuesCrash(ToolsetContract):
    plugin = "kit_toolsets:odd_values_crash"
    sample_calls = {"number": {"text": "1"}}


class TestNotCalledAtAll(ToolsetContract):
    plugin = "kit_toolsets:odd_values_crash"
    sample_calls = {"number": None}


class TestNotReadOnly(ToolsetContract):
    plugin = "kit_toolsets:not_read_only"


class TestWholeFile(ToolsetContract):
    plugin = "kit_toolsets:whole_file"
    sample_calls = {"whole": {"path": "README.md"}}


class TestReadsAnything(ToolsetContract):
    plugin = "kit_toolsets:reads_anything"
    sample_calls = {"peek": {"path": "README.md"}}


class TestPathByFormat(ToolsetContract):
    plugin = "kit_toolsets:path_by_format"
    sample_calls = {"read_at": {"what": "README.md"}}


class TestPathByOptionalFormat(ToolsetContract):
    plugin = "kit_toolsets:path_by_optional_format"
    sample_calls = {"read_at": {"what": "README.md"}}


class TestPathByName(ToolsetContract):
    plugin = "kit_toolsets:path_by_name"
    sample_calls = {"read_at": {"inputFile": "README.md"}}


class TestPathsByName(ToolsetContract):
    plugin = "kit_toolsets:paths_by_name"
    sample_calls = {"read_at": {"source_files": ["README.md"]}}


class TestPathByTarget(ToolsetContract):
    plugin = "kit_toolsets:path_by_target"
    sample_calls = {"read_at": {"what": "README.md"}}


class TestPathByDeclaration(ToolsetContract):
    plugin = "kit_toolsets:path_by_declaration"
    sample_calls = {"read_at": {"what": "README.md"}}
    path_arguments = {"read_at": ["what"]}


class TestPathByNothing(ToolsetContract):
    plugin = "kit_toolsets:path_by_name"
    sample_calls = {"read_at": {"inputFile": "README.md"}}
    path_arguments = {"read_at": []}


class TestWritesAnywhere(ToolsetContract):
    plugin = "kit_toolsets:writes_anywhere"
    sample_calls = {"put": {"file": "new.txt", "text": "hello"}}


class TestTargetAsWritten(ToolsetContract):
    plugin = "kit_toolsets:target_as_written"
    sample_calls = {"store": {"path": "new.txt", "text": "hello"}}


class TestNoTarget(ToolsetContract):
    plugin = "kit_toolsets:no_target"
    sample_calls = {"store": {"path": "new.txt", "text": "hello"}}


class TestMadeUpArguments(ToolsetContract):
    plugin = "kit_toolsets:made_up_arguments"
    sample_calls = {"picky": {}}


class TestOneAtATime(ToolsetContract):
    plugin = "kit_toolsets:one_at_a_time"
    sample_calls = {"busy": {"text": "hello"}}


class TestNeverCancelled(ToolsetContract):
    plugin = "kit_toolsets:never_cancelled"
    sample_calls = {"stubborn": {"text": "hello"}}
    patience_secs = 0.2


class TestLeavesAProcess(ToolsetContract):
    plugin = "kit_toolsets:leaves_a_process"
    patience_secs = 0.2
    slow_calls = {"sleeper": {"secs": 12}}


class TestLeaksDescriptors(ToolsetContract):
    plugin = "kit_toolsets:leaks_descriptors"
    patience_secs = 0.2
    sample_calls = {"leaky": {"text": "hello"}}


class TestLeaksThreads(ToolsetContract):
    plugin = "kit_toolsets:leaks_threads"
    patience_secs = 0.2
    sample_calls = {"spawning": {"text": "hello"}}


class TestSleepsOnTheLoop(ToolsetContract):
    plugin = "kit_toolsets:sleeps_on_the_loop"
    sample_calls = {"drowsy": {"text": "hello"}}


class TestWorksOnTheLoop(ToolsetContract):
    plugin = "kit_toolsets:works_on_the_loop"
    sample_calls = {"pondering": {"text": "hello"}}


class TestBlocksWhereItIsSlow(ToolsetContract):
    plugin = "kit_toolsets:sleeps_on_the_loop"
    slow_calls = {"drowsy": {"text": "hello"}}


class TestSleepsInAThread(ToolsetContract):
    plugin = "kit_toolsets:sleeps_in_a_thread"
    sample_calls = {"thoughtful": {"text": "hello"}}


class TestSamplesThatAreSetUp(ToolsetContract):
    plugin = "kit_toolsets:good"

    @pytest.fixture
    def samples(self, tmp_path):
        (tmp_path / "number").write_text("2")
        yield {"echo": {"text": "hello"}, "first_line": {"path": "README.md", "number": 1}}
        assert (tmp_path / "number").read_text() == "2"


class TestSamplesThatFail(ToolsetContract):
    plugin = "kit_toolsets:good"

    @pytest.fixture
    def samples(self):
        return {"echo": {"text": " "}}


class TestPrints(ToolsetContract):
    plugin = "kit_toolsets:prints"
    sample_calls = {"chatty": {"text": "hello"}}


class TestForgetsSessions(ToolsetContract):
    plugin = "kit_toolsets:forgets_sessions"
    sample_calls = {"echo": {"text": "hello"}}


class TestReadsAndEdits(ToolsetContract):
    plugin = "kit_toolsets:reads_and_edits"


class TestWritesAgain(ToolsetContract):
    plugin = "kit_toolsets:writes_again"


class TestAsyncHook(ToolsetContract):
    plugin = "kit_toolsets:async_hook"


class TestWrongArgument(ToolsetContract):
    plugin = "kit_toolsets:wrong_argument"


class TestHeavy(ToolsetContract):
    plugin = "kit_heavy:good"


class TestNoisy(ToolsetContract):
    plugin = "kit_noisy:good"
