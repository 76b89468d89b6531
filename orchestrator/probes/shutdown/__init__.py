"""The shutdown probe: what requests get when their server is told to end."""
