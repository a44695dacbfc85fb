INSERT INTO tenure_journal
    (ns, seq, at, kind, election, number, member, incarnation, priority, cause, heir,
     endpoints, metadata, details)
VALUES
    (:ns, :seq, :at, :kind, :election, :number, :member, :incarnation, :priority, :cause, :heir,
     :endpoints, :metadata, :details)
