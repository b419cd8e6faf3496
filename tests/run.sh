#!/usr/bin/env bash
# Installs and starts what the tests need, then runs all of them. Nothing is skipped: what is missing is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '── %s\n' "$*"; }
began=$SECONDS

need=()
want() { command -v "$1" >/dev/null 2>&1 || need+=("$2"); }
want nginx nginx-light
want php php-cli
want python3 python3
want openssl openssl
want tinyproxy tinyproxy-bin
want valgrind valgrind
want curl curl
want jq jq
want cc build-essential
want wrk wrk
want h2load nghttp2-client
want go golang-go
want java default-jre-headless
[ -e /usr/share/java/hdrhistogram.jar ] || need+=(libhdrhistogram-java)
[ -n "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] || need+=(postgresql)
[ -n "$(ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null)" ] || need+=(postgresql-contrib)
if [ "${#need[@]}" -gt 0 ]; then
  say "installing ${need[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null
  # Services that Debian would start are not wanted: the tests start their own.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made_policy=1; fi
  apt-get install -y -q --no-install-recommends "${need[@]}" >/dev/null
  [ -z "${made_policy:-}" ] || rm -f "$policy"
fi

tools=$PWD/target/tools
export PATH="$tools:$PATH"
if ! command -v vegeta >/dev/null 2>&1; then
  say "installing vegeta"
  GOBIN=$tools go install github.com/tsenart/vegeta/v12@v12.13.0
fi

pidfile=$(mktemp)
end() {
  # Only an engine that this script started is ended.
  if [ -s "$pidfile" ]; then kill "$(cat "$pidfile")" 2>/dev/null || true; fi
  rm -f "$pidfile"
}
trap end EXIT
say "Docker Engine"
bash tests/docker-engine.sh "$pidfile"
say "base image"
bash experiments/base-image.sh

# The searches for inputs that break the language, or the reader of answers, take a minute each; another seed looks elsewhere.
export FUZZ_SECONDS="${FUZZ_SECONDS:-60}" FUZZ_SEED="${FUZZ_SEED:-1}"
say "tests (after $((SECONDS - began)) s)"
cargo test --workspace --locked --no-fail-fast "$@"
say "passed in $((SECONDS - began)) s"
