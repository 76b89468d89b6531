"""Stage 6: what the figures are worth. `stats` are pure functions, `rules` the table of verdicts, `summary` both."""
