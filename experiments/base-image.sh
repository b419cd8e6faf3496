#!/usr/bin/env bash
# Makes the image debian:bookworm-slim, on which every candidate is built, where no registry can serve it.
#
#   experiments/base-image.sh
#
# Nothing is done when the image is there or can be pulled. Otherwise debootstrap builds it from the Debian mirror that
# this host itself installs from, because a host that can't reach a registry often reaches one mirror and no other.
# Certificates and apt settings of the host go into the image: behind a proxy that signs with its own authority, or with
# a clock that apt refuses, no package could be installed in it otherwise.
#
# Environment: MIRROR, SECURITY_MIRROR (archive addresses, instead of the host's own).
# Ends with 0 when the image is there, 1 with a reason otherwise.
set -euo pipefail

readonly image=debian:bookworm-slim
readonly release=bookworm
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'base-image: %s\n' "$*"; }
fail() { printf 'base-image: %s\n' "$*" >&2; exit 1; }

# Every "address suite" pair that the host's apt reads, one a line, from both formats of its files.
host_sources() {
    local files=()
    shopt -s nullglob
    files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
    shopt -u nullglob
    local file
    for file in "${files[@]}"; do
        [ -r "$file" ] || continue
        case $file in
        *.sources)
            awk 'BEGIN { RS = ""; FS = "\n" }
                 { addresses = suites = ""
                   for (i = 1; i <= NF; i++) {
                       if ($i ~ /^URIs:/)   { addresses = $i; sub(/^URIs:[ \t]*/, "", addresses) }
                       if ($i ~ /^Suites:/) { suites = $i; sub(/^Suites:[ \t]*/, "", suites) }
                       if ($i ~ /^Enabled:[ \t]*no/) next
                   }
                   n = split(addresses, a, /[ \t]+/); m = split(suites, s, /[ \t]+/)
                   for (j = 1; j <= n; j++) for (k = 1; k <= m; k++) print a[j], s[k] }' "$file"
            ;;
        *)
            sed -nE 's/^[[:space:]]*deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]]+([^[:space:]]+).*/\2 \3/p' "$file"
            ;;
        esac
    done
}

# The first http address of the host whose address ends with $1 and whose suite matches $2 (an extended expression).
# Other schemes (mirror lists, files, CD-ROMs) mean nothing to debootstrap.
host_mirror() {
    host_sources | awk -v end="$1" -v suite="$2" '
        { sub(/\/+$/, "", $1) }
        $1 ~ /^https?:/ && $1 ~ (end "$") && $2 ~ suite && !found { print $1; found = 1 }'
}

# The host's settings without which apt can't fetch here: proxies, certificates, checks against the clock.
host_apt_settings() {
    apt-config dump | grep -iE \
        '^Acquire::(https?::(.*::)?(Proxy|CaInfo|Verify-Peer|Verify-Host)|Check-Valid-Until|Check-Date) ' || true
}

[ $# -eq 0 ] || fail "takes no arguments, but was given: $*"
command -v docker >/dev/null || fail "there is no docker command here. Install a Docker Engine (tests/docker-engine.sh does)."
docker info >/dev/null 2>&1 || fail "no Docker Engine answers. Start one (tests/docker-engine.sh does), or set DOCKER_HOST."

if docker image inspect "$image" >/dev/null 2>&1; then
    say "$image is already there"
    exit 0
fi
if timeout 120 docker pull -q "$image" >/dev/null 2>&1; then
    say "$image was pulled"
    exit 0
fi
say "$image can't be pulled; building it with debootstrap"

[ "$(id -u)" -eq 0 ] || fail "debootstrap needs root, and this is user $(id -un). Run it again with sudo."
if ! command -v debootstrap >/dev/null || [ ! -r "$keyring" ]; then
    command -v apt-get >/dev/null || fail "neither debootstrap nor apt-get is here. Install debootstrap and the Debian archive keyring."
    say "installing debootstrap"
    apt-get update -qq >/dev/null || fail "apt-get update failed; debootstrap can't be installed."
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap debian-archive-keyring >/dev/null ||
        fail "apt-get could not install debootstrap and debian-archive-keyring."
fi

mirror=${MIRROR:-$(host_mirror /debian "^(bookworm|trixie|forky|sid|stable|testing|unstable|oldstable)$")}
mirror=${mirror:-http://deb.debian.org/debian}
security=${SECURITY_MIRROR:-$(host_mirror '/debian-security' 'security')}
security=${security:-http://deb.debian.org/debian-security}
say "archive $mirror, security $security"

work=$(mktemp -d "${TMPDIR:-/tmp}/base-image.XXXXXX")
readonly work
clean_up() {
    # debootstrap mounts /proc in the tree while it configures packages; when it is interrupted the mount stays.
    local mounted
    while read -r mounted; do umount -l "$mounted" || true; done < <(awk -v w="$work/" 'index($2, w) == 1 { print $2 }' /proc/mounts | sort -r)
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

root=$work/root
debootstrap --variant=minbase --keyring="$keyring" "$release" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
    tail -n 15 "$work/debootstrap.log" >&2
    fail "debootstrap of $release from $mirror failed (its last lines are above). Try another archive with MIRROR=…"
}

# The same file, in the same form, as the published image has: what a Dockerfile does with it works on both.
rm -f "$root/etc/apt/sources.list"
cat >"$root/etc/apt/sources.list.d/debian.sources" <<SOURCES
Types: deb
URIs: $mirror
Suites: $release $release-updates
Components: main
Signed-By: $keyring

Types: deb
URIs: $security
Suites: $release-security
Components: main
Signed-By: $keyring
SOURCES

host_apt_settings >"$root/etc/apt/apt.conf.d/90host"
# Packages of an image are throw-away: no caches, no translations, no synchronous unpacking, no service started by dpkg.
cat >"$root/etc/apt/apt.conf.d/docker-clean" <<'APT'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

# "slim": no documentation, manual pages or translations, now and for packages installed later.
cat >"$root/etc/dpkg/dpkg.cfg.d/docker" <<'DPKG'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
DPKG
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share/doc" -depth -type d -empty -delete
rm -rf "$root"/usr/share/{man,info,lintian,locale}/* "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin \
    "$root"/var/log/{bootstrap.log,dpkg.log,alternatives.log} "$root"/var/lib/apt/lists/* "$root"/var/cache/ldconfig/aux-cache

shopt -s nullglob
authorities=(/usr/local/share/ca-certificates/*)
shopt -u nullglob
if [ ${#authorities[@]} -gt 0 ]; then
    install -d "$root/usr/local/share/ca-certificates"
    cp -R "${authorities[@]}" "$root/usr/local/share/ca-certificates/"
fi
if [ -r /etc/ssl/certs/ca-certificates.crt ]; then
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
fi

tar --numeric-owner --one-file-system -C "$root" -c . |
    docker import --change 'CMD ["bash"]' - "$image" >/dev/null || fail "docker import of the finished tree failed."
say "$image is built: $(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%.0f MB", $1 / 1e6 }')"
