"""The stores that are tormented, each behind one protocol; the rest of the chaos run knows no other name of theirs."""
