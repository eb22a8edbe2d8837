"""The catalogue of faults and bad inputs, CATALOGUE.md, and their tests."""
