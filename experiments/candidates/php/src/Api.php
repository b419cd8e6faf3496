<?php

declare(strict_types=1);

namespace Candidate;

use PDOException;
use Throwable;

/**
 * The requests of the contract (../../README.md) and their answers. php-fpm makes one per request, FrankenPHP's worker
 * keeps one; nothing of a request stays in it.
 */
final class Api
{
    /** The most bytes of a request body that the contract accepts. */
    private const BODY_LIMIT = 64 << 10;

    private readonly Verifier $verifier;
    private readonly Events $events;

    public function __construct(Settings $settings, bool $kept)
    {
        $this->verifier = new Verifier($settings->publicKey, $settings->issuer, $settings->audience);
        $this->events = new Events($settings, $kept);
    }

    /** Answers the request that PHP's globals hold. */
    public function serve(): void
    {
        try {
            $answer = $this->answer(
                $_SERVER['REQUEST_METHOD'],
                explode('?', $_SERVER['REQUEST_URI'], 2)[0],
                $_SERVER['HTTP_AUTHORIZATION'] ?? null,
            );
        } catch (Throwable $failure) {
            $clientsDoing = $failure instanceof PDOException && Events::refused($failure);
            if (!$clientsDoing) {
                error_log('php: ' . $failure->getMessage());
            }
            $answer = $clientsDoing ? Answer::failure(400, 'invalid_request') : Answer::failure(500, 'server_error');
        }
        $answer->send();
    }

    private function answer(string $method, string $path, ?string $authorization): Answer
    {
        if ($path === '/healthz') {
            return $method === 'GET' ? $this->health() : Answer::wrongMethod('GET');
        }
        $claims = $this->verifier->verify($authorization);
        if ($claims === null) {
            return Answer::refusal(401, 'invalid_token');
        }
        if ($path === '/events') {
            return match (true) {
                $method !== 'POST' => Answer::wrongMethod('POST'),
                !$claims->allow('events:write') => Answer::refusal(403, 'insufficient_scope'),
                default => $this->write($claims),
            };
        }
        if (preg_match('~^/events/([^/]*)$~D', $path, $parts) === 1) {
            return match (true) {
                $method !== 'GET' => Answer::wrongMethod('GET'),
                !$claims->allow('events:read') => Answer::refusal(403, 'insufficient_scope'),
                default => $this->read($parts[1], $claims),
            };
        }
        return Answer::failure(404, 'not_found');
    }

    private function health(): Answer
    {
        $this->events->ping();
        return Answer::json(200, '{"ok":true}');
    }

    private function read(string $text, Claims $claims): Answer
    {
        $id = self::rowId($text);
        $event = $id === null ? null : $this->events->find($id, $claims->subject);
        return $event === null ? Answer::failure(404, 'not_found') : Answer::json(200, $event);
    }

    private function write(Claims $claims): Answer
    {
        // One byte more than may be there tells a body that is too long without reading all of it.
        $body = file_get_contents('php://input', length: self::BODY_LIMIT + 1);
        $event = $body === false || strlen($body) > self::BODY_LIMIT ? null : json_decode($body);
        $kind = $event->kind ?? null;
        $payload = $event->payload ?? null;
        // A NUL would end the text on its way to the database, which could then store the beginning only.
        $kindIsGood = is_string($kind) && $kind !== '' && !str_contains($kind, "\0");
        if (!is_object($event) || !$kindIsGood || !is_object($payload)) {
            return Answer::failure(400, 'invalid_request');
        }
        $json = json_encode($payload, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION | JSON_THROW_ON_ERROR);
        return Answer::json(201, '{"id":' . $this->events->add($claims->subject, $kind, $json) . '}');
    }

    /** A row's number: decimal digits without sign or leading zero, at least 1, that fit a bigint. */
    private static function rowId(string $text): ?int
    {
        if (preg_match('/^[1-9][0-9]{0,18}$/D', $text) !== 1) {
            return null;
        }
        // Past the largest integer the cast stays at it, and the text differs.
        return (string) (int) $text === $text ? (int) $text : null;
    }
}
