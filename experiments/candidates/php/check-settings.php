<?php

declare(strict_types=1);

// Run once by the entrypoints, before a server starts: settings that can't work end the container with one line.

use Candidate\Events;
use Candidate\Settings;

require __DIR__ . '/src/all.php';

try {
    (new Events(Settings::check(), kept: true))->ping();
} catch (PDOException $failure) {
    fwrite(STDERR, 'php: the connection to the database failed: ' . strtr($failure->getMessage(), "\n", ' ') . "\n");
    exit(1);
} catch (RuntimeException $failure) {
    fwrite(STDERR, 'php: ' . $failure->getMessage() . "\n");
    exit(1);
}
