SELECT seq FROM tenure_ended WHERE ns = ?1 AND incarnation = ?2
