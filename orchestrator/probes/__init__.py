"""What is done to cells. Load is measured in rounds of interleaved slices: start with `rounds.measure_round`."""
