"""Links, emulated: a model of sizes and times, a proxy, and virtual time."""
