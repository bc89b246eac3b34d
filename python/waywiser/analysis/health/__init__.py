"""Whether machines are healthy, from every reference at hand: baselines, former nights, peers,
equal parts, other people's machines, and what devices report of themselves."""
