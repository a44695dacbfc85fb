UPDATE tenure_members SET attention = attention + 1 WHERE ns = ?1 AND id = ?2
