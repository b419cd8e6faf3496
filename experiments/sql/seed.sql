-- 1,000,000 rows of one subject, the same on every machine: nothing here depends on the clock or on chance.
-- One statement and one transaction; the visibility map and statistics come afterwards, so that no reader pays for them.
INSERT INTO events (subject, kind, payload, created_at)
SELECT 'client-bench',
       (ARRAY['page_view', 'click', 'signup', 'purchase'])[1 + g % 4],
       format('{"path": "/p/%s", "ms": %s, "ref": "%s"}', g % 1000, g % 500, md5(g::text))::jsonb,
       timestamptz '2026-09-01 00:00:00+00' + g * interval '1 second'
FROM generate_series(1, 1000000) AS g;

VACUUM (FREEZE, ANALYZE) events;
