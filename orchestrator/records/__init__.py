"""Stage 7: the JSON records: `model` is their schema, `assemble` makes them from rounds, `store` keeps a run."""
