-- The table that every candidate of the OAuth2 study reads and writes, and the extension that warms it before a cell.
-- The key is an identity column that nobody can set, so the seed's rows are 1 to 1,000,000 in order.
-- No second index: a read is by key, and an index on anything else would only tax the writes.
CREATE EXTENSION IF NOT EXISTS pg_prewarm;

CREATE TABLE events (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject    text        NOT NULL,
    kind       text        NOT NULL,
    payload    jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
