<?php

declare(strict_types=1);

namespace Candidate;

/** What the service reads of a verified token. */
final class Claims
{
    /** @param list<string> $scopes */
    public function __construct(public readonly string $subject, private readonly array $scopes)
    {
    }

    public function allow(string $scope): bool
    {
        return in_array($scope, $this->scopes, true);
    }
}
