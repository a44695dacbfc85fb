SELECT 1 FROM tenure_members WHERE incarnation = ?1
