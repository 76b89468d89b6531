"""What is done to cells. Load is measured in rounds of interleaved slices: start with `load.measure.measure_round`."""
