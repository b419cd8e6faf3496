#!/usr/bin/env bash
# Checks the settings, then runs php-fpm and nginx as one: SIGTERM ends both, and when one dies so does the container.
set -euo pipefail

# The first process of a container has no default action for a signal: without the trap, SIGTERM would do nothing.
ending=
trap 'ending=yes' TERM INT

php /srv/check-settings.php
[ -z "$ending" ] || exit 0

workers=1
if [ "$CORES" -gt 2 ]; then workers=2; fi
sed -e "s/@WORKERS@/$workers/" -e "s/@PORT@/$PORT/" -e "s/@LISTEN@/${LISTEN:-127.0.0.1}/" \
    /srv/fpm/nginx.conf.in >/etc/nginx/nginx.conf

# As many descriptors as this container may have; asking for a certain number fails where the engine itself has fewer.
ulimit -n "$(ulimit -Hn)"

php-fpm8.2 --fpm-config /srv/fpm/php-fpm.conf &
fpm=$!
# nginx must not take a request before the socket is there; php-fpm makes it at once or ends.
for _ in $(seq 500); do
    [ -S /run/php/fpm.sock ] && break
    kill -0 "$fpm" 2>/dev/null || break
    sleep 0.01
done
nginx &
nginx=$!

# `wait` also returns when a trap has run.
wait -n "$fpm" "$nginx" || true
if [ -z "$ending" ]; then
    for server in "php-fpm:$fpm" "nginx:$nginx"; do
        kill -0 "${server#*:}" 2>/dev/null || echo "php: ${server%:*} has ended by itself; ending the container" >&2
    done
fi
kill -TERM "$fpm" "$nginx" 2>/dev/null || true
wait "$fpm" "$nginx" 2>/dev/null || true
[ -n "$ending" ]
