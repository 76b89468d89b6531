"""matrix.yaml, checked (`loading.load_matrix`), and the cells that a suite of it stands for (`expand.expand`)."""
