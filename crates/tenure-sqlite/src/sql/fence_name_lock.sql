UPDATE {database}.tenure_names SET token = token WHERE ns = ?1 AND name = ?2
