"""The load probe: throughput, latency, CPU and memory, in rounds of interleaved slices."""
