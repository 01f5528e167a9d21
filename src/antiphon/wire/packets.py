"""What TCP/IP and TLS add to a frame: pure arithmetic, for a link on which nothing else is sent and nothing is lost.

Sizes: a packet of 1500 bytes (Ethernet, RFC 894) with the headers of IPv4 (20 bytes, RFC 791) and of TCP (20, RFC 9293) with
timestamps (10 and 2 of padding, RFC 7323, as systems of today send them) has room for 1448; a record of TLS 1.3 (RFC 8446, 5.2)
adds a header of 5, the type of its content and a tag of 16, and holds 16384. A frame leaves at once (no Nagle), so it shares no
packet with the next one. Acknowledgements are not counted: where both ends talk they ride on packets that are sent anyway, in
a stream one way they are a packet of 52 bytes for every other one.
"""

import math

PACKET_BYTES = 1448
"""Bytes of TCP's stream in a packet."""

PACKET_HEADER_BYTES = 20 + 20 + 12
"""IPv4, TCP, and its timestamps."""

RECORD_BYTES = 2**14
"""Bytes of content in a record of TLS, at most."""

RECORD_HEADER_BYTES = 5 + 1 + 16
"""Header, type of the content, and tag."""


def packets(size: int, *, tls: bool = True) -> int:
    """Packets of a frame of `size` bytes, its WebSocket header included."""
    return math.ceil(_stream_bytes(size, tls) / PACKET_BYTES)


def packet_bytes(size: int, *, tls: bool = True) -> int:
    """Bytes of these packets, all headers included."""
    return _stream_bytes(size, tls) + PACKET_HEADER_BYTES * packets(size, tls=tls)


def _stream_bytes(size: int, tls: bool) -> int:
    return size + RECORD_HEADER_BYTES * math.ceil(size / RECORD_BYTES) * tls
