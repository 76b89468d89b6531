"""Stage 1: matrix.yaml -> frozen models. Start with `loading.load_matrix`."""
