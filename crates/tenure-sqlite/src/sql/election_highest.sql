SELECT coalesce(max(number), 0) FROM tenure_elections
