"""The protocol, without I/O: messages, packing, and the state machine of a connection. See docs/protocol.md."""
