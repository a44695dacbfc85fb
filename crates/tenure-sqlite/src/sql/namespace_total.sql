SELECT coalesce(sum(seq), 0) FROM tenure_namespaces
