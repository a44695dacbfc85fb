INSERT INTO tenure_names
    (ns, name, token, rev, id, incarnation, writer, nonce, endpoint, pairs, data, bound_at)
VALUES
    (:ns, :name, :token, :rev, :id, :incarnation, :writer, :nonce, :endpoint, :pairs, :data,
     :bound_at)
ON CONFLICT (ns, name) DO UPDATE
SET token = excluded.token, rev = excluded.rev, id = excluded.id,
    incarnation = excluded.incarnation, writer = excluded.writer, nonce = excluded.nonce,
    endpoint = excluded.endpoint, pairs = excluded.pairs, data = excluded.data,
    bound_at = excluded.bound_at
