#!/usr/bin/env bash
# Starts PostgreSQL, making the cluster first where there is none; every other command is run as it is.
#
#   docker run IMAGE [postgres] [-p PORT] [-c NAME=VALUE]…      the server
#   docker run IMAGE pgbench …                                  or psql, pg_dump: the tools of the same version
#
# Environment, as the official image has it: POSTGRES_PASSWORD (needed for a new cluster), POSTGRES_USER (postgres),
# POSTGRES_DB (the user's name), POSTGRES_INITDB_ARGS, PGDATA. The server listens on 127.0.0.1 alone, for the studies
# share the host's network; `-c listen_addresses=…` changes that. TCP wants the password (scram-sha-256), the socket
# inside the container does not.
set -euo pipefail

fail() { printf 'postgres: %s\n' "$*" >&2; exit 1; }

if [ $# -eq 0 ] || [ "${1:0:1}" = - ]; then
    set -- postgres "$@"
fi
[ "$1" = postgres ] || exec "$@"

if [ "$(id -u)" -eq 0 ]; then
    # The data may be a fresh volume that belongs to root. PostgreSQL refuses to run as root.
    install -d -m 700 -o postgres -g postgres "$PGDATA"
    find "$PGDATA" ! -user postgres -exec chown postgres:postgres {} +
    exec setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/var/lib/postgresql "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    [ -n "${POSTGRES_PASSWORD:-}" ] || fail "a new cluster needs a password: set POSTGRES_PASSWORD."
    user=${POSTGRES_USER:-postgres}
    database=${POSTGRES_DB:-$user}
    # shellcheck disable=SC2086  # several arguments in one variable, as the official image takes them
    initdb --pgdata="$PGDATA" --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --encoding=UTF8 \
        --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 ${POSTGRES_INITDB_ARGS:-} >&2 ||
        fail "initdb failed (its message is above)."
    printf '%s\n' "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    printf '%s\n' "listen_addresses = '127.0.0.1'" >>"$PGDATA/postgresql.conf"
    if [ "$database" != postgres ]; then
        # Single-user mode needs no server, port or waiting; the name is an identifier, so its quotes are doubled.
        printf 'CREATE DATABASE "%s"\n' "${database//\"/\"\"}" | postgres --single -D "$PGDATA" postgres >&2 ||
            fail "the database $database could not be made (the message is above)."
    fi
fi
unset POSTGRES_PASSWORD
exec "$@"
