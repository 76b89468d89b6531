"""The commands of `matrix`: they parse, call and print. `app` has them all."""
