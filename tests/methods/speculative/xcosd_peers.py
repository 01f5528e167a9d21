"""Devices and clouds of the methods with candidates that say what no right one says."""

from functools import cache

from antiphon.models.toy import named_toy
from antiphon.vocabulary import CommonVocabulary, common_vocabulary

TOKENS = 8


@cache
def common() -> CommonVocabulary:
    return common_vocabulary(named_toy("toy-device").vocabulary, named_toy("toy-cloud").vocabulary)
