"""A cell's image: what goes into it (`plan`), the host's settings (`host`), its files (`context`).

Beside it: which wheels a package index has (`index` asks, `simple_index` reads the answer).
"""
