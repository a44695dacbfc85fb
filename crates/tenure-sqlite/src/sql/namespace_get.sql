SELECT seq, trimmed FROM tenure_namespaces WHERE ns = ?1
