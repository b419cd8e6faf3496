#!/bin/sh
# Writes nginx's settings from PORT, CORES and LISTEN (127.0.0.1), then becomes nginx.
set -eu

fail() { printf 'probe: %s\n' "$*" >&2; exit 1; }

# A whole number between two bounds in the variable $1, or the end.
number() {
    eval "value=\${$1:-}"
    [ -n "$value" ] || fail "$1 is not set; it must be a whole number from $2 to $3"
    case $value in *[!0-9]* | ??????*) fail "$1 is \`$value\`; it must be a whole number from $2 to $3" ;; esac
    if [ "$value" -lt "$2" ] || [ "$value" -gt "$3" ]; then
        fail "$1 is $value; it must be a whole number from $2 to $3"
    fi
}

number PORT 1 65535
number CORES 1 1024
listen=${LISTEN:-127.0.0.1}
case $listen in *[!0-9.]*) fail "LISTEN is \`$listen\`; it must be an IPv4 address" ;; esac

sed -e "s/@PORT@/$PORT/" -e "s/@CORES@/$CORES/" -e "s/@LISTEN@/$listen/" /etc/nginx/nginx.conf.in >/etc/nginx/nginx.conf
# As many descriptors as this container may have; asking for a certain number fails where the engine itself has fewer.
# shellcheck disable=SC3045  # the shell is Debian's dash, which has both
ulimit -n "$(ulimit -Hn)"
exec nginx
