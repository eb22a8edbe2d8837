"""The tools that applications use in their tests."""
