"""Jobs, pools and a store under injected faults, a ledger of what really happened, and a checker that rules on it."""
