"""What was measured, as JSON that is written once: `model` is its schema, `store` keeps the folder of a run."""
