INSERT INTO tenure_journal
    (ns, seq, at, kind, election, number, member, incarnation, priority, cause,
     reason, by_whom, heir, endpoints, metadata)
VALUES
    (:ns, :seq, :at, :kind, :election, :number, :member, :incarnation, :priority, :cause,
     :reason, :by, :heir, :endpoints, :metadata)
