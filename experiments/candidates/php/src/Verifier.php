<?php

declare(strict_types=1);

namespace Candidate;

use OpenSSLAsymmetricKey;

/** Checks bearer tokens. It holds the key and nothing that a request brought: every request is verified. */
final class Verifier
{
    private readonly OpenSSLAsymmetricKey|false $key;

    public function __construct(string $publicKey, private readonly string $issuer, private readonly string $audience)
    {
        $this->key = openssl_pkey_get_public($publicKey);
    }

    /** The subject and scopes of a token, or null where there is none or it is not acceptable. */
    public function verify(?string $authorization): ?Claims
    {
        if (
            $authorization === null || $this->key === false ||
            preg_match('/^Bearer +([\w-]+)\.([\w-]+)\.([\w-]+) *$/Di', $authorization, $parts) !== 1
        ) {
            return null;
        }
        [, $header, $body, $signature] = $parts;
        $signature = self::decode($signature);
        $head = json_decode(self::decode($header) ?? '', true);
        // Only RS256, whatever the token says of itself. RFC 7515 §4.1.11: a `crit` that isn't understood is a refusal.
        if ($signature === null || !is_array($head) || ($head['alg'] ?? null) !== 'RS256' || isset($head['crit'])) {
            return null;
        }
        if (openssl_verify("$header.$body", $signature, $this->key, OPENSSL_ALGO_SHA256) !== 1) {
            return null;
        }
        $claims = json_decode(self::decode($body) ?? '', true);
        return is_array($claims) && $this->acceptable($claims, time())
            ? new Claims($claims['sub'], explode(' ', $claims['scope'] ?? ''))
            : null;
    }

    /** RFC 7519 §4.1, without leeway: `exp` is needed and refused on its second; `nbf` counts when it is there. */
    private function acceptable(array $claims, int $now): bool
    {
        $expires = $claims['exp'] ?? null;
        $notBefore = $claims['nbf'] ?? 0;
        $audience = $claims['aud'] ?? null;
        $subject = $claims['sub'] ?? null;
        return ($claims['iss'] ?? null) === $this->issuer
            && ($audience === $this->audience || (is_array($audience) && in_array($this->audience, $audience, true)))
            && (is_int($expires) || is_float($expires)) && $expires > $now
            && (is_int($notBefore) || is_float($notBefore)) && $notBefore <= $now
            && is_string($subject) && $subject !== ''
            && is_string($claims['scope'] ?? '');
    }

    /** Base64 in the alphabet of URLs, without padding (RFC 7515 §2). */
    private static function decode(string $text): ?string
    {
        $bytes = base64_decode(strtr($text, '-_', '+/'), true);
        return $bytes === false ? null : $bytes;
    }
}
