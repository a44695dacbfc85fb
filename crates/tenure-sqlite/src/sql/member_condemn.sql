UPDATE tenure_members SET condemned = 1 WHERE ns = ?1 AND id = ?2
