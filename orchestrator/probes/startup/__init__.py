"""The startup probe: how soon a fresh server serves, and what it costs when idle."""
