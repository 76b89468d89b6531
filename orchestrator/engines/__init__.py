"""Where images are built and servers run. `protocol.Engine` is the one seam; `choose.choose_engine` picks."""
