UPDATE tenure_members SET holds = holds + ?4 WHERE ns = ?1 AND id = ?2 AND incarnation = ?3
