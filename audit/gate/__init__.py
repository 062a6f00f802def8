"""The gate: evidence and a policy become one verdict, with every condition of it."""
