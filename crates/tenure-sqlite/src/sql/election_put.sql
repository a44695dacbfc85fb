INSERT INTO tenure_elections
    (ns, name, number, era, holder, incarnation, elected_at, handed,
     lapse_boot, lapse_from, lapse_span, winner, nonce, pause_reason, pause_by,
     step_reason, step_by, step_to, heir, heir_boot, heir_from, heir_span, changed_at)
VALUES
    (:ns, :name, :number, :era, :holder, :incarnation, :elected_at, :handed,
     :lapse_boot, :lapse_from, :lapse_span, :winner, :nonce, :pause_reason, :pause_by,
     :step_reason, :step_by, :step_to, :heir, :heir_boot, :heir_from, :heir_span, :changed_at)
ON CONFLICT (ns, name) DO UPDATE SET
    number = excluded.number, era = excluded.era,
    holder = excluded.holder, incarnation = excluded.incarnation,
    elected_at = excluded.elected_at, handed = excluded.handed,
    lapse_boot = excluded.lapse_boot, lapse_from = excluded.lapse_from,
    lapse_span = excluded.lapse_span,
    winner = excluded.winner, nonce = excluded.nonce,
    pause_reason = excluded.pause_reason, pause_by = excluded.pause_by,
    step_reason = excluded.step_reason, step_by = excluded.step_by, step_to = excluded.step_to,
    heir = excluded.heir, heir_boot = excluded.heir_boot,
    heir_from = excluded.heir_from, heir_span = excluded.heir_span,
    changed_at = excluded.changed_at
