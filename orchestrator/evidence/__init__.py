"""What was measured, as JSON that is written once.

`model` says what a reader gets, `form` how a file says it in less room, `store` keeps the folder of a run.
"""
