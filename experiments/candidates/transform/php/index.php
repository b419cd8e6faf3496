<?php
// The CPU-bound endpoint on FrankenPHP in worker mode: the script stays in memory and takes one request after the other.
declare(strict_types=1);

function inside(int $points): int
{
    $state = 1;
    $hits = 0;
    for ($point = 0; $point < $points; $point++) {
        $state = ($state * 1664525 + 1013904223) & 0xFFFFFFFF;
        $x = $state >> 16;
        $state = ($state * 1664525 + 1013904223) & 0xFFFFFFFF;
        $y = $state >> 16;
        if ($x * $x + $y * $y < 65536 * 65536) {
            $hits++;
        }
    }
    return $hits;
}

function transform(array $items): array
{
    usort($items, fn (array $a, array $b): int => [$b['score'], $a['id']] <=> [$a['score'], $b['id']]);
    $fields = array_map(
        fn (array $item): array => [
            'id' => $item['id'],
            'sha256' => hash('sha256', "{$item['id']}:{$item['name']}:{$item['score']}"),
        ],
        array_slice($items, 0, 50),
    );
    return [
        'digest' => hash('sha256', implode('', array_column($fields, 'sha256'))),
        'inside' => inside(20_000),
        'fields' => $fields,
    ];
}

function answer(int $status, string $text): void
{
    http_response_code($status);
    header('Content-Type: application/json');
    echo $text;
}

$handle = function (): void {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    if ($path === '/healthz') {
        answer(200, '{}');
        return;
    }
    if ($path !== '/transform' || $_SERVER['REQUEST_METHOD'] !== 'POST') {
        answer(404, '{"error":"not_found"}');
        return;
    }
    $body = json_decode(file_get_contents('php://input'), true);
    if (!is_array($body['items'] ?? null)) {
        answer(400, '{"error":"invalid_request"}');
        return;
    }
    answer(200, json_encode(transform($body['items'])));
};

if (function_exists('frankenphp_handle_request')) {
    while (frankenphp_handle_request($handle)) {
        gc_collect_cycles();
    }
} else {
    $handle();
}
