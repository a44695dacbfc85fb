DELETE FROM tenure_members WHERE ns = ?1 AND id = ?2 AND incarnation = ?3
