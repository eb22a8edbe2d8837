"""The stores under test, each behind one protocol; the rest of the chaos run knows only that."""
