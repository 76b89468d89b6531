"""What is done to cells. `registry` has a row for each probe; the folder of its name measures, records and shows it."""
