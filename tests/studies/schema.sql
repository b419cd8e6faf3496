CREATE EXTENSION pg_prewarm;
CREATE TABLE items (id bigint PRIMARY KEY, name text NOT NULL);
INSERT INTO items SELECT g, 'item ' || g FROM generate_series(1, 1000) AS g;
