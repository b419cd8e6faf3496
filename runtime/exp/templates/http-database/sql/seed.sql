INSERT INTO items (name) SELECT 'item ' || n FROM generate_series(1, 10000) AS n;
