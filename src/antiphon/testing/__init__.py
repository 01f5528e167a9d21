"""For whoever writes a method: every branch of real code summed exactly, and both halves in lockstep, without a link."""
