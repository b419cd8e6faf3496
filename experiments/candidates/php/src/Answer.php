<?php

declare(strict_types=1);

namespace Candidate;

/** A JSON answer. */
final class Answer
{
    /** @param array<string, string> $headers */
    private function __construct(
        public readonly int $status,
        public readonly string $body,
        public readonly array $headers = [],
    ) {
    }

    public static function json(int $status, string $body): self
    {
        return new self($status, $body);
    }

    public static function failure(int $status, string $code): self
    {
        return new self($status, "{\"error\":\"$code\"}");
    }

    /** As RFC 6750 §3 asks of a resource server. */
    public static function refusal(int $status, string $code): self
    {
        return new self($status, "{\"error\":\"$code\"}", ['WWW-Authenticate' => "Bearer error=\"$code\""]);
    }

    /** As RFC 9110 §15.5.6 asks: a 405 names the method that would do. */
    public static function wrongMethod(string $allowed): self
    {
        return new self(405, '{"error":"method_not_allowed"}', ['Allow' => $allowed]);
    }

    public function send(): void
    {
        header('Content-Type: application/json');
        header('Content-Length: ' . strlen($this->body));
        foreach ($this->headers as $name => $value) {
            header("$name: $value");
        }
        // After the headers: PHP makes every answer with a WWW-Authenticate a 401.
        http_response_code($this->status);
        echo $this->body;
    }
}
