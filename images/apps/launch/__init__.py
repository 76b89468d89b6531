"""Launchers for servers that have no command of their own: `python -m launch.serve_<server> … module:app`."""
