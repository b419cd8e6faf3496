<?php

declare(strict_types=1);

// Every request of php-fpm: all objects are made anew, only the connection outlives it.

use Candidate\Api;
use Candidate\Settings;

require __DIR__ . '/../src/all.php';

(new Api(Settings::read(), kept: false))->serve();
