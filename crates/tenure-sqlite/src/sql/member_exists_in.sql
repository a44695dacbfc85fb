SELECT 1 FROM tenure_members WHERE incarnation = ?1 AND ns = ?2
