"""Documents, passages, indexes and weights: what an end knows beyond its model. The same code runs on both ends (METHODS 4).

`readers` make documents of files, `passages` cuts them, `ingest` keeps an `Index` in step with the files, and `weights` says
how much an end's passages count.
"""
