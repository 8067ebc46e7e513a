"""The provider suite over each provider of ``kit_providers``. Run by ``test_contracts`` in a child process."""

from openheim import Usage
from openheim.testing import HttpAnswer, ProviderContract


class SmallWire(ProviderContract):
    plugin = "kit_providers:good"
    name = "small"
    answer = HttpAnswer.of("think hm\nsay Hello \nsay there\nend\n")
    tool_answer = HttpAnswer.of('say I look.\ncall list_dir {}\ncall read_file {"path": "a"}\nend\n')
    reports_usage = True
    errors = {"server_error": HttpAnswer.of("think hm\nshout\n")}


class TestGood(SmallWire):
    usage = Usage(1, 1)


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


class TestCountsTwice(SmallWire):
    plugin = "kit_providers:faulty.CountsTwice"
    usage = Usage(1, 1)


class TestSlipsInTake(SmallWire):
    plugin = "kit_providers:faulty.SlipsInTake"


class TestHoldsBack(SmallWire):
    plugin = "kit_providers:faulty.HoldsBack"


class TestThinksInChunks(SmallWire):
    plugin = "kit_providers:faulty.ThinksInChunks"


class TestLeavesSlowly(SmallWire):
    plugin = "kit_providers:faulty.LeavesSlowly"


class TestTellsNothingApart(SmallWire):
    plugin = "kit_providers:faulty.TellsNothingApart"


class TestSendsForeignSignatures(SmallWire):
    plugin = "kit_providers:faulty.SendsForeignSignatures"


class TestSendsAnotherEntrysSignatures(SmallWire):
    plugin = "kit_providers:faulty.SendsAnotherEntrysSignatures"


class TestKeyInUrl(SmallWire):
    plugin = "kit_providers:faulty.KeyInUrl"


class TestLooksUp(SmallWire):
    plugin = "kit_providers:faulty.LooksUp"


class TestCountsMessages(SmallWire):
    plugin = "kit_providers:faulty.CountsMessages"


class TestWritesNaN(SmallWire):
    plugin = "kit_providers:faulty.WritesNaN"


class TestHeavyProvider(ProviderContract):
    plugin = "kit_providers:heavy"
    name = "offline"
