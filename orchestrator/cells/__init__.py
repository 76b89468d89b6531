"""Stage 2: a suite -> cells. Start with `expand.expand`."""
