#!/usr/bin/env bash
# Sees to it that a Docker Engine answers: installs Debian's docker.io where there is no dockerd, starts one where none
# runs, and waits until it answers.
#
#   tests/docker-engine.sh [PID-FILE]
#
# The process id of a dockerd that this script started is written to PID-FILE, so that the caller can end it:
#     [ ! -s PID-FILE ] || kill "$(cat PID-FILE)"
# The file is emptied when an engine answered already. Ends with 0 when an engine answers, 1 with a reason otherwise.
set -euo pipefail

readonly patience=60 # seconds until dockerd must answer

say() { printf 'docker-engine: %s\n' "$*"; }
fail() { printf 'docker-engine: %s\n' "$*" >&2; exit 1; }
version() { timeout 20 docker info --format '{{.ServerVersion}}, {{.Driver}}, cgroup v{{.CgroupVersion}} by {{.CgroupDriver}}' 2>/dev/null; }
answers() { command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1; }

[ $# -le 1 ] || fail "takes at most one argument, the file for the process id, but was given: $*"
pid_file=${1:-}
[ -z "$pid_file" ] || : >"$pid_file" || fail "can't write $pid_file"

if answers; then
    say "an engine answers already ($(version))"
    exit 0
fi
if [ -n "${DOCKER_HOST:-}" ]; then
    fail "nothing answers at DOCKER_HOST=$DOCKER_HOST. Start that engine, or unset DOCKER_HOST to have a local one."
fi
[ "$(id -u)" -eq 0 ] || fail "no engine answers, and dockerd needs root to be installed or started; this is user $(id -un). Run it again with sudo."

if ! command -v dockerd >/dev/null; then
    command -v apt-get >/dev/null || fail "there is neither dockerd nor apt-get here. Install a Docker Engine."
    say "installing docker.io"
    apt-get update -qq >/dev/null || fail "apt-get update failed; docker.io can't be installed."
    # Without systemd the package's own start does nothing; with it, the engine runs when the package is set up.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables >/dev/null ||
        fail "apt-get could not install docker.io and iptables."
    # Later releases of Debian have the client in a package of its own.
    if ! command -v docker >/dev/null; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker-cli >/dev/null ||
            fail "apt-get could not install docker-cli."
    fi
    if answers; then
        say "the package started an engine ($(version))"
        exit 0
    fi
fi

log=$(mktemp "${TMPDIR:-/tmp}/dockerd.XXXXXX.log")
# A session of its own: the engine must outlive this script and the terminal that it was called from.
setsid dockerd </dev/null >"$log" 2>&1 &
dockerd=$!
[ -z "$pid_file" ] || echo "$dockerd" >"$pid_file"
say "started dockerd, process $dockerd, output in $log"

began=$SECONDS
until answers; do
    if ! kill -0 "$dockerd" 2>/dev/null; then
        [ -z "$pid_file" ] || : >"$pid_file"
        tail -n 15 "$log" >&2
        fail "dockerd has ended (its last lines are above)."
    fi
    if [ $((SECONDS - began)) -ge "$patience" ]; then
        tail -n 15 "$log" >&2
        kill "$dockerd" 2>/dev/null || true
        [ -z "$pid_file" ] || : >"$pid_file"
        fail "dockerd did not answer within $patience s and was ended (its last lines are above)."
    fi
    sleep 0.5
done
say "the engine answers after $((SECONDS - began)) s ($(version))"
