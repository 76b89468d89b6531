"""A cell's image: what goes into it (`plan`), the host's settings (`host`), its files (`context`)."""
