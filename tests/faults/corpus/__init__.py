"""The catalogue of bad inputs, as data: what is given to the program, and what must become of it."""
