"""What stands beside a run: doctor, wheels, compose and bases. They compute; `cli` parses and prints."""
