UPDATE {database}.tenure_elections SET number = number WHERE ns = ?1 AND name = ?2
