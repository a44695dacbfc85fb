SELECT rev, era, kept_from FROM tenure_revisions WHERE ns = ?1
