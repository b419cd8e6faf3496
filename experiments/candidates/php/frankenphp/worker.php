<?php

declare(strict_types=1);

// A worker of FrankenPHP: settings, key, connection and statements are made once, then requests are answered in turn.

use Candidate\Api;
use Candidate\Settings;

require_once __DIR__ . '/../src/all.php';

// A client that breaks off must not end the worker with it.
ignore_user_abort(true);

$api = new Api(Settings::read(), kept: true);
$serve = static function () use ($api): void {
    $api->serve();
};

while (frankenphp_handle_request($serve)) {
    // Between requests, where it delays nobody's answer.
    gc_collect_cycles();
}
