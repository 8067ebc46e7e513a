"""The suite of embedders over each embedder of ``kit_embedders``. Run by ``test_contracts`` in a child process."""

import json

from openheim.testing import EmbedderContract, HttpAnswer


class Small(EmbedderContract):
    """For those that speak the small wire."""

    __test__ = False

    plugin = "kit_embedders:faulty.Small"
    name = "small"
    most_texts = 10

    def texts_in(self, content: bytes) -> list[str]:
        texts: list[str] = json.loads(content)
        return texts

    def answer_with(self, vectors: list[list[float]]) -> HttpAnswer:
        return HttpAnswer.of(json.dumps(vectors), content_type="application/json")


class TestGood(Small):
    __test__ = True


class TestGoodOffline(EmbedderContract):
    plugin = "kit_embedders:faulty.Offline"
    name = "offline"


class TestNotAsync(EmbedderContract):
    plugin = "kit_embedders:faulty.NotAsync"
    name = "offline"


class TestReverses(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.Reverses"


class TestForgetsItsDimension(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.ForgetsItsDimension"


class TestAsksForNothing(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.AsksForNothing"


class TestSendsBlanks(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.SendsBlanks"


class TestSendsAllAtOnce(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.SendsAllAtOnce"


class TestCrashesOnOddTexts(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.CrashesOnOddTexts"


class TestTakesAnything(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.TakesAnything"


class TestForgetsItsSize(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.ForgetsItsSize"


class TestLeaksErrors(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.LeaksErrors"


class TestTellsNothingApart(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.TellsNothingApart"


class TestQuotesTheService(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.QuotesTheService"


class TestNeverWaits(EmbedderContract):
    plugin = "kit_embedders:faulty.NeverWaits"
    name = "offline"


class TestLeavesItOpen(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.LeavesItOpen"


class TestMixes(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.Mixes"


class TestShowsItsKey(Small):
    __test__ = True
    plugin = "kit_embedders:faulty.ShowsItsKey"
