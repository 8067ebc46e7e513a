"""The provider suite over each provider of ``kit_providers``. Run by ``test_contracts`` in a child process."""

from openheim.testing import HttpAnswer, ProviderContract


class SmallWire(ProviderContract):
    plugin = "kit_providers:good"
    name = "small"
    answer = HttpAnswer.of("think hm\nsay Hello \nsay there\nend\n")
    tool_answer = HttpAnswer.of('say I look.\ncall list_dir {}\ncall read_file {"path": "a"}\nend\n')
    reports_usage = True


class TestGood(SmallWire):
    pass


class TestGoodOffline(ProviderContract):
    plugin = "kit_providers:good_offline"
    name = "offline"


class TestNoToolCalls(ProviderContract):
    plugin = "kit_providers:good_offline"
    name = "offline"
    tool_prompt = "What is in this directory?"


class TestBlankModel(SmallWire):
    plugin = "kit_providers:faulty.BlankModel"


class TestOddFinish(SmallWire):
    plugin = "kit_providers:faulty.OddFinish"


class TestNegativeUsage(SmallWire):
    plugin = "kit_providers:faulty.NegativeUsage"


class TestNoUsage(SmallWire):
    plugin = "kit_providers:faulty.NoUsage"


class TestRewording(SmallWire):
    plugin = "kit_providers:faulty.Rewording"


class TestNoCallIds(SmallWire):
    plugin = "kit_providers:faulty.NoCallIds"


class TestForgetsFinish(SmallWire):
    plugin = "kit_providers:faulty.ForgetsFinish"


class TestNamesAsModels(SmallWire):
    plugin = "kit_providers:faulty.NamesAsModels"


class TestMutating(SmallWire):
    plugin = "kit_providers:faulty.Mutating"


class TestUnstable(SmallWire):
    plugin = "kit_providers:faulty.Unstable"


class TestShared(ProviderContract):
    plugin = "kit_providers:faulty.Shared"
    name = "offline"


class TestClosesOnce(ProviderContract):
    plugin = "kit_providers:faulty.ClosesOnce"
    name = "offline"


class TestNeverWaits(ProviderContract):
    plugin = "kit_providers:faulty.NeverWaits"
    name = "offline"


class TestGoesOn(SmallWire):
    plugin = "kit_providers:faulty.GoesOn"


class TestLeaksErrors(SmallWire):
    plugin = "kit_providers:faulty.LeaksErrors"


class TestQuotesTheService(SmallWire):
    plugin = "kit_providers:faulty.QuotesTheService"


class TestTakesItForAnAnswer(SmallWire):
    plugin = "kit_providers:faulty.TakesItForAnAnswer"


class TestPicky(SmallWire):
    plugin = "kit_providers:faulty.Picky"


class TestPickyInWords(SmallWire):
    plugin = "kit_providers:faulty.PickyInWords"


class TestShowsItsKey(SmallWire):
    plugin = "kit_providers:faulty.ShowsItsKey"


class TestLogsItsKey(SmallWire):
    plugin = "kit_providers:faulty.LogsItsKey"


class TestListsModels(SmallWire):
    plugin = "kit_providers:faulty.ListsModels"
