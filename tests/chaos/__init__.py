"""Jobs, pools and a store under a nemesis, a ledger of what really happened, and a checker that rules on it."""
