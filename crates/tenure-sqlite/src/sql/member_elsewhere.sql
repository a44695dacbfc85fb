SELECT * FROM tenure_members WHERE boot <> ?1
