"""The install probe: what a server comes to when it is installed."""
