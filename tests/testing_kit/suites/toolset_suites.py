"""The toolset suite over each toolset of ``kit_toolsets``. Run by ``test_contracts`` in a child process."""

from openheim.testing import ToolsetContract

SAMPLES = {"echo": {"text": "hello"}, "first_line": {"path": "README.md"}}


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


class TestAsyncHook(ToolsetContract):
    plugin = "kit_toolsets:async_hook"


class TestWrongArgument(ToolsetContract):
    plugin = "kit_toolsets:wrong_argument"


class TestHeavy(ToolsetContract):
    plugin = "kit_heavy:good"


class TestNoisy(ToolsetContract):
    plugin = "kit_noisy:good"
