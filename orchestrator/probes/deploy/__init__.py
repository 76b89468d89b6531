"""The deploy probe: what is lost and delayed when a server under load is replaced, reloaded or disturbed."""
