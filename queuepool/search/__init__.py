"""Finding jobs, wherever they are, and doing something with all that were found."""
