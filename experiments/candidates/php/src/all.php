<?php

declare(strict_types=1);

// Six files that every request needs: no autoloader is faster than naming them.
require __DIR__ . '/Settings.php';
require __DIR__ . '/Claims.php';
require __DIR__ . '/Verifier.php';
require __DIR__ . '/Events.php';
require __DIR__ . '/Answer.php';
require __DIR__ . '/Api.php';
