"""What a cloud sends is bounded in count, in bytes and in time: one that lies costs a device one sentence."""

import asyncio
import hashlib
import json
import subprocess
import sys
import zlib
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection

from antiphon.device.connection import connect
from antiphon.errors import AntiphonError, ProtocolError
from antiphon.net.worker import Worker
from antiphon.vocabulary import MAX_BYTES, MAX_TOKENS, Vocabulary
from antiphon.wire import messages as m
from cloud.test_silence import fake_cloud, frame
from links import raw_session
