"""Stage 5: images -> rounds of interleaved slices. Start with `rounds.measure_round`."""
