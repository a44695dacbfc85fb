SELECT number, era FROM tenure_forgotten WHERE ns = ?1
