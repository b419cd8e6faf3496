<?php

declare(strict_types=1);

namespace Candidate;

use RuntimeException;

/** What the environment says. Checked whole before the server starts (check-settings.php); read again by each process. */
final class Settings
{
    private function __construct(
        public readonly string $dsn,
        public readonly string $databaseUser,
        public readonly string $databasePassword,
        public readonly string $publicKey,
        public readonly string $issuer,
        public readonly string $audience,
    ) {
    }

    /** @throws RuntimeException with one line that names the variable, what it holds and what would be right */
    public static function read(): self
    {
        $url = self::text('DATABASE_URL', 'postgres://user:password@host:port/database');
        $parts = parse_url($url);
        $database = ltrim($parts['path'] ?? '', '/');
        if (!in_array($parts['scheme'] ?? '', ['postgres', 'postgresql'], true) || !isset($parts['host'], $parts['user']) || $database === '') {
            throw new RuntimeException('DATABASE_URL is not usable; it must be postgres://user:password@host:port/database');
        }
        $dsn = sprintf(
            'pgsql:host=%s;port=%d;dbname=%s',
            self::quoted(rawurldecode($parts['host'])),
            $parts['port'] ?? 5432,
            self::quoted(rawurldecode($database)),
        );
        return new self(
            $dsn,
            rawurldecode($parts['user']),
            rawurldecode($parts['pass'] ?? ''),
            self::text('PUBLIC_KEY', "the issuer's RSA public key as PEM text"),
            self::text('ISSUER', 'the `iss` of acceptable tokens'),
            self::text('AUDIENCE', 'the `aud` of acceptable tokens'),
        );
    }

    /** What only the entrypoints use, and what costs too much to be looked at in every request. */
    public static function check(): self
    {
        $listen = getenv('LISTEN');
        if ($listen !== false && filter_var($listen, FILTER_VALIDATE_IP, FILTER_FLAG_IPV4) === false) {
            throw new RuntimeException("LISTEN is `$listen`; it must be an IPv4 address");
        }
        self::number('PORT', 65_535);
        $settings = self::read();
        self::number('POOL', 10_000);
        self::number('CORES', 1_024);
        $key = openssl_pkey_get_public($settings->publicKey);
        if ($key === false || openssl_pkey_get_details($key)['type'] !== OPENSSL_KEYTYPE_RSA) {
            throw new RuntimeException('PUBLIC_KEY is not an RSA public key in PEM form');
        }
        return $settings;
    }

    private static function text(string $name, string $meaning): string
    {
        $value = getenv($name);
        if ($value === false || $value === '') {
            throw new RuntimeException("$name is not set; it must be $meaning");
        }
        return $value;
    }

    private static function number(string $name, int $most): void
    {
        $meaning = "a whole number from 1 to $most";
        $value = self::text($name, $meaning);
        if (preg_match('/^[0-9]{1,9}$/D', $value) !== 1 || (int) $value < 1 || (int) $value > $most) {
            throw new RuntimeException("$name is `$value`; it must be $meaning");
        }
    }

    /** A value of libpq's connection string. */
    private static function quoted(string $value): string
    {
        return "'" . addcslashes($value, "'\\") . "'";
    }
}
