#!/bin/sh
# Checks the settings, then becomes FrankenPHP, which ends on SIGTERM by itself.
set -eu

php /srv/check-settings.php

THREADS=$((POOL + 1))
LISTEN=${LISTEN:-127.0.0.1}
GOMAXPROCS=$CORES
export THREADS LISTEN GOMAXPROCS
exec frankenphp run --config /srv/frankenphp/Caddyfile
