"""From matrix.yaml to records and reports. docs/architecture.md shows the rooms of the code, in their order."""
