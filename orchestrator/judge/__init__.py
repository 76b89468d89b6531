"""What the evidence is worth: `stats` are pure functions, `rules` the table of verdicts, `assemble` judges a run."""
