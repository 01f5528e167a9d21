"""The device: it drafts with a small model of its own, and writes answers together with a cloud."""
