-- The write of the load as a pgbench script: what the database alone carries, without HTTP, tokens or a candidate.
INSERT INTO events (subject, kind, payload) VALUES ('client-bench', 'page_view', '{"path":"/pricing","ms":182,"ref":"newsletter"}') RETURNING id;
