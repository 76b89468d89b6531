"""What stands beside a run: doctor, wheels, compose, bases, tables of fields. They compute; `cli` parses and prints."""
