UPDATE tenure_members SET endpoints = ?3, metadata = ?4, lock = ?5 WHERE ns = ?1 AND id = ?2
