"""What every table and page is made of, whatever it tells: numbers in words, and plain tables of texts."""
