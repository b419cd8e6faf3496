<?php

declare(strict_types=1);

namespace Candidate;

use DateTimeImmutable;
use DateTimeZone;
use PDO;
use PDOException;
use PDOStatement;

/** The table. One connection, opened at first use and again after one that was lost. */
final class Events
{
    private const SELECT = 'SELECT id, subject, kind, payload, created_at FROM events WHERE id = ? AND subject = ?';
    private const INSERT = 'INSERT INTO events (subject, kind, payload) VALUES (?, ?, ?) RETURNING id';

    private ?PDO $connection = null;
    /** @var array<string, PDOStatement> */
    private array $statements = [];

    /**
     * @param bool $kept whether this object outlives the request. Then it keeps its statements, prepared once. Otherwise
     *     the connection is PHP's persistent one, and statements go as one parameterised round trip: to prepare one for
     *     a single use would cost a second.
     */
    public function __construct(private readonly Settings $settings, private readonly bool $kept)
    {
    }

    /** Opens the connection if it isn't, and asks the server something. */
    public function ping(): void
    {
        $this->guarded(fn () => $this->connection()->query('SELECT 1')->fetchColumn());
    }

    /** The event as JSON text, or null. The payload is passed on as the database wrote it. */
    public function find(int $id, string $subject): ?string
    {
        $row = $this->guarded(fn () => $this->run(self::SELECT, [$id, $subject])->fetch(PDO::FETCH_NUM));
        if ($row === false) {
            return null;
        }
        [$id, $subject, $kind, $payload, $created] = $row;
        $created = (new DateTimeImmutable($created))->setTimezone(new DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.u\Z');
        return sprintf(
            '{"id":%d,"subject":%s,"kind":%s,"payload":%s,"created_at":"%s"}',
            $id,
            json_encode($subject, JSON_THROW_ON_ERROR),
            json_encode($kind, JSON_THROW_ON_ERROR),
            $payload,
            $created,
        );
    }

    /** Stores an event and gives its number. */
    public function add(string $subject, string $kind, string $payload): int
    {
        return (int) $this->guarded(fn () => $this->run(self::INSERT, [$subject, $kind, $payload])->fetchColumn());
    }

    private function run(string $sql, array $values): PDOStatement
    {
        $statement = $this->statements[$sql] ?? $this->connection()->prepare($sql);
        if ($this->kept) {
            $this->statements[$sql] = $statement;
        }
        $statement->execute($values);
        return $statement;
    }

    private function connection(): PDO
    {
        return $this->connection ??= new PDO($this->settings->dsn, $this->settings->databaseUser, $this->settings->databasePassword, [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_EMULATE_PREPARES => false,
            PDO::ATTR_PERSISTENT => !$this->kept,
            PDO::PGSQL_ATTR_DISABLE_PREPARES => !$this->kept,
        ]);
    }

    /** Drops a connection that failed: unless the statement was merely refused, nobody knows what state it is in. */
    private function guarded(callable $work): mixed
    {
        try {
            return $work();
        } catch (PDOException $failure) {
            if (!self::refused($failure)) {
                $this->connection = null;
                $this->statements = [];
            }
            throw $failure;
        }
    }

    /**
     * Whether the server refused a value. Classes 22 (data) and 54 (limits) are values that PostgreSQL can't store, such
     * as a NUL in a string or a payload that is nested too deeply: the client's doing. Everything else is not.
     */
    public static function refused(PDOException $failure): bool
    {
        $class = substr((string) ($failure->errorInfo[0] ?? ''), 0, 2);
        return $class === '22' || $class === '54';
    }
}
