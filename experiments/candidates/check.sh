#!/usr/bin/env bash
# Walks the whole contract of README.md with a candidate, against a real PostgreSQL, on this machine's loopback.
#
#   experiments/candidates/check.sh [--load] CANDIDATE…|all
#
# CANDIDATE is go, rust, php-fpm, probe, or frankenphp-loop: FrankenPHP's worker script, run by PHP alone with a stand-in
# for the function that FrankenPHP adds, since its image can't be built everywhere. --load adds four seconds of wrk on the
# contract's mix. One line per case; ends with 0 if all passed, 1 if a case failed, 2 if the check itself could not run.
# Images are built as exp-check/NAME and kept for the next time; containers are removed on every ending.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly run=$$
readonly issuer=https://issuer.test audience=events rows=1000 pool=4
passed=0
failed=0

stop() { printf 'check: %s\n' "$*" >&2; exit 2; }
pass() { printf 'PASS  %s\n' "$*"; passed=$((passed + 1)); }
miss() { printf 'FAIL  %s\n' "$*"; failed=$((failed + 1)); }

# -- what this check makes, and how it goes away -------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/tmp}/candidates-check.XXXXXX")
readonly work
clean_up() {
    local containers
    containers=$(docker ps -aq --filter "label=exp.check=$run")
    # shellcheck disable=SC2086  # one id per word
    [ -z "$containers" ] || docker rm -f -v $containers >/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A port of loopback that nothing listens on now.
free_port() {
    local port
    for _ in $(seq 100); do
        port=$((20000 + RANDOM % 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    stop "no free port was found between 20000 and 29999"
}

build() { # NAME CONTEXT [DOCKERFILE]
    printf '      building %s\n' "$1"
    docker build -q --network host -t "exp-check/$1" -f "$here/$2/${3:-Dockerfile}" "$here/$2" >"$work/build.log" 2>&1 ||
        { tail -n 20 "$work/build.log" >&2; stop "the image of $1 can't be built (the end of its output is above)"; }
}

# -- the database ---------------------------------------------------------------------------------------------------

sql() { docker exec -i "check-$run-database" psql -v ON_ERROR_STOP=1 -qAt -h /var/run/postgresql -p "$database_port" -U check -d events "$@"; }

start_database() {
    build postgres postgres
    database_port=$(free_port)
    docker run -d --name "check-$run-database" --label "exp.check=$run" --network host \
        -e POSTGRES_USER=check -e POSTGRES_PASSWORD='pass word' -e POSTGRES_DB=events \
        exp-check/postgres postgres -p "$database_port" -c fsync=off >/dev/null
    # A password with a blank, so that a candidate that doesn't decode the address fails.
    database_url="postgres://check:pass%20word@127.0.0.1:$database_port/events"
    for _ in $(seq 100); do
        sql -c 'SELECT 1' >/dev/null 2>&1 && break
        sleep 0.1
    done
    sql <"$here/../sql/schema.sql" || stop "the schema can't be made (psql's message is above)"
    sed "s/1000000/$rows/" "$here/../sql/seed.sql" | sql || stop "the rows can't be made (psql's message is above)"
    sql -c "INSERT INTO events (subject, kind, payload) VALUES ('someone-else', 'click', '{}')"
}

# -- tokens ---------------------------------------------------------------------------------------------------------

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# A token with the claims $1, of the header $2, signed by the key file $3.
mint() {
    local signed
    signed=$(printf '%s' "$2" | base64url).$(printf '%s' "$1" | base64url)
    printf '%s.%s' "$signed" "$(printf '%s' "$signed" | openssl dgst -sha256 -sign "$3" | base64url)"
}

# Claims that are good for an hour, amended by the jq expression $1.
claims() {
    jq -cn --arg iss "$issuer" --arg aud "$audience" --argjson now "$(date +%s)" '{
        $iss, $aud, sub: "client-bench", iat: $now, nbf: ($now - 60), exp: ($now + 3600), scope: "events:read events:write"
    } | '"${1:-.}"
}

# A token of the issuer with those claims.
token() { mint "$(claims "${1:-.}")" '{"alg":"RS256","typ":"JWT","kid":"check-1"}' "$work/key.pem"; }

make_tokens() {
    local name
    for name in key foreign; do
        openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$work/$name.pem" 2>/dev/null ||
            openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$work/$name.pem" 2>/dev/null
    done
    openssl pkey -in "$work/key.pem" -pubout -out "$work/public.pem"
    PUBLIC_KEY=$(cat "$work/public.pem")
    export PUBLIC_KEY
    both=$(token)
    reader=$(token '.scope = "events:read"')
    writer=$(token '.scope = "events:write"')
}

# -- a candidate ----------------------------------------------------------------------------------------------------

# Runs the image of candidate $1 with the full environment; further arguments go to docker run. What is not detached
# gets 20 s: a candidate that starts although it should refuse to would never return.
launch() {
    local image=$1
    shift
    timeout 20 docker run --label "exp.check=$run" --network host -e PUBLIC_KEY \
        -e PORT="$port" -e DATABASE_URL="$database_url" -e POOL="$pool" -e CORES=1 -e ISSUER="$issuer" -e AUDIENCE="$audience" \
        "$@" "exp-check/$image"
}

start_candidate() {
    port=$(free_port)
    launch "$1" -d --name "check-$run-candidate" >/dev/null || stop "the container of $1 can't be started (see above)"
    for _ in $(seq 150); do
        [ "$(curl -s -m 2 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/healthz" || true)" = 200 ] && return 0
        sleep 0.1
    done
    docker logs "check-$run-candidate" >&2
    stop "$1 did not answer /healthz within 15 s (its output is above)"
}

# SIGTERM must end it cleanly, and soon.
stop_candidate() {
    local began=$SECONDS code
    docker stop -t 8 "check-$run-candidate" >/dev/null
    code=$(docker inspect -f '{{.State.ExitCode}}' "check-$run-candidate")
    if [ "$code" = 0 ] && [ $((SECONDS - began)) -le 4 ]; then
        pass "$1: SIGTERM ends it with 0"
    else
        miss "$1: SIGTERM ends it with 0 (ended with $code after $((SECONDS - began)) s)"
    fi
    docker rm -v "check-$run-candidate" >/dev/null
}

# Two servers in one container: when one is gone, so must be the container.
either_dies() {
    local server code
    for server in nginx php-fpm; do
        start_candidate php-fpm
        # The children of the container's first process are the two masters.
        # shellcheck disable=SC2016  # the shell in the container expands it
        docker exec "check-$run-candidate" bash -c \
            'for p in $(cat /proc/1/task/1/children); do grep -q "^$0" "/proc/$p/comm" && kill -9 "$p"; done; true' "$server"
        code=$(timeout 5 docker wait "check-$run-candidate") || code="not ended after 5 s"
        same "it ends with 1 when $server dies" "$code" 1
        docker rm -f -v "check-$run-candidate" >/dev/null
    done
}

# -- cases ----------------------------------------------------------------------------------------------------------

# One request. $1 name, $2 status, $3 jq expression that the body must satisfy, $4 expression for a header line or "",
# $5 path, then what curl shall do with it. Answers other than JSON fail whatever the expression says.
case_of() {
    local name="$candidate: $1" status=$2 body=$3 header=$4 path=$5 got
    shift 5
    got=$(curl -s -m 10 -D "$work/head" -o "$work/body" -w '%{http_code}' "$@" "http://127.0.0.1:$port$path") || got="none (curl ended with $?)"
    if [ "$got" != "$status" ]; then
        miss "$name: status $got instead of $status; body $(head -c 200 "$work/body")"
    elif ! grep -qi '^content-type: application/json' "$work/head"; then
        miss "$name: content type $(grep -i '^content-type' "$work/head" | tr -d '\r') instead of application/json"
    elif ! jq -e "$body" "$work/body" >/dev/null 2>&1; then
        miss "$name: body $(head -c 200 "$work/body") is not as $body"
    elif [ -n "$header" ] && ! grep -Eqi "$header" "$work/head"; then
        miss "$name: no header line is like $header"
    else
        pass "$name"
    fi
}

# A request with a token that must be refused. $1 name, $2 the Authorization header's value or "".
refused() {
    local sent=()
    [ -z "$2" ] || sent=(-H "Authorization: $2")
    case_of "$1" 401 '. == {"error":"invalid_token"}' '^www-authenticate: Bearer error="invalid_token"' "${3:-/events/1}" "${sent[@]}"
}

read_case() { case_of "$1" "$2" "$3" "" "$4" -H "Authorization: Bearer $both"; }
bad_body() { case_of "write: $1" 400 '. == {"error":"invalid_request"}' "" /events -H "Authorization: Bearer $both" -H 'Content-Type: application/json' "${@:2}"; }
count() { sql -c 'SELECT count(*) FROM events'; }

token_cases() {
    refused "no token" ""
    refused "another scheme" "Basic Y2xpZW50OnNlY3JldA=="
    refused "a scheme without token" "Bearer"
    refused "garbage" "Bearer garbage"
    refused "garbage in three parts" "Bearer a.b.c"
    refused "a foreign key" "Bearer $(mint "$(claims)" '{"alg":"RS256","kid":"check-1"}' "$work/foreign.pem")"
    refused "changed claims" "Bearer $(printf '%s' "$both" | cut -d. -f1).$(claims '.sub = "root"' | base64url).$(printf '%s' "$both" | cut -d. -f3)"
    refused "a cut signature" "Bearer ${both%????}"
    refused "alg none, no signature" "Bearer $(printf '{"alg":"none"}' | base64url).$(claims | base64url)."
    refused "alg none, good signature" "Bearer $(mint "$(claims)" '{"alg":"none"}' "$work/key.pem")"
    local signed hexkey
    signed=$(printf '{"alg":"HS256"}' | base64url).$(claims | base64url)
    hexkey=$(od -An -v -tx1 "$work/public.pem" | tr -d ' \n')
    refused "HS256 with the public key as secret" "Bearer $signed.$(printf '%s' "$signed" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$hexkey" -binary | base64url)"
    signed=$(printf '{"alg":"RS512"}' | base64url).$(claims | base64url)
    refused "RS512" "Bearer $signed.$(printf '%s' "$signed" | openssl dgst -sha512 -sign "$work/key.pem" | base64url)"
    refused "another iss" "Bearer $(token '.iss = "https://elsewhere.test"')"
    refused "no iss" "Bearer $(token 'del(.iss)')"
    refused "another aud" "Bearer $(token '.aud = "billing"')"
    refused "another aud, as array" "Bearer $(token '.aud = ["billing", "mail"]')"
    refused "no aud" "Bearer $(token 'del(.aud)')"
    refused "no sub" "Bearer $(token 'del(.sub)')"
    refused "expired" "Bearer $(token '.exp = .iat - 3600')"
    refused "expired a second ago" "Bearer $(token '.exp = .iat - 1')"
    refused "no exp" "Bearer $(token 'del(.exp)')"
    refused "nbf in the future" "Bearer $(token '.nbf = .iat + 600')"
    refused "a bad id with a bad token" "Bearer garbage" /events/abc
    refused "an unknown route without token" "" /elsewhere
    local good
    for good in '.aud = ["billing", "events"]' 'del(.nbf)' '.scope = "mail events:read"'; do
        case_of "accepted: $good" 200 '.id == 1' "" /events/1 -H "Authorization: Bearer $(token "$good")"
    done
    case_of "accepted: the scheme in lower case" 200 '.id == 1' "" /events/1 -H "authorization: bearer $both"
    local challenge='^www-authenticate: Bearer error="insufficient_scope"' answer='. == {"error":"insufficient_scope"}'
    case_of "reading without its scope" 403 "$answer" "$challenge" /events/1 -H "Authorization: Bearer $writer"
    case_of "writing without its scope" 403 "$answer" "$challenge" /events -H "Authorization: Bearer $reader" -d '{"kind":"click","payload":{}}'
    case_of "a scope that only begins like it" 403 "$answer" "$challenge" /events/1 -H "Authorization: Bearer $(token '.scope = "events:readers"')"
    case_of "no scope at all" 403 "$answer" "$challenge" /events/1 -H "Authorization: Bearer $(token 'del(.scope)')"
}

route_cases() {
    local absent='. == {"error":"not_found"}' wrong='. == {"error":"method_not_allowed"}' id
    case_of "health without token" 200 '. == {"ok":true}' "" /healthz
    case_of "health, wrong method" 405 "$wrong" '^allow: GET' /healthz -X POST
    read_case "an unknown route" 404 "$absent" /elsewhere
    read_case "a route below a row" 404 "$absent" /events/1/payload
    case_of "reading the collection" 405 "$wrong" '^allow: POST' /events -H "Authorization: Bearer $both"
    case_of "writing to a row" 405 "$wrong" '^allow: GET' /events/1 -H "Authorization: Bearer $both" -d '{}'
    case_of "deleting a row" 405 "$wrong" '^allow: GET' /events/1 -H "Authorization: Bearer $both" -X DELETE
    read_case "row 1" 200 '. == {"id":1,"subject":"client-bench","kind":"click","payload":{"path":"/p/1","ms":1,
        "ref":"c4ca4238a0b923820dcc509a6f75849b"},"created_at":"2026-09-01T00:00:01.000000Z"}' /events/1
    read_case "row $rows, with a query" 200 ".id == $rows and .kind == \"page_view\" and (.payload | type) == \"object\"" "/events/$rows?x=1"
    read_case "a foreign subject's row" 404 "$absent" "/events/$((rows + 1))"
    for id in 99999999 abc 0 -1 +1 01 1.0 1e0 '' 9223372036854775807 9223372036854775808 99999999999999999999; do
        read_case "id \`$id\`" 404 "$absent" "/events/$id"
    done
}

write_cases() {
    local before id
    before=$(count)
    bad_body "no kind" -d '{"payload":{}}'
    bad_body "empty kind" -d '{"kind":"","payload":{}}'
    bad_body "kind a number" -d '{"kind":1,"payload":{}}'
    bad_body "kind null" -d '{"kind":null,"payload":{}}'
    bad_body "no payload" -d '{"kind":"click"}'
    bad_body "payload an array" -d '{"kind":"click","payload":[]}'
    bad_body "payload a string" -d '{"kind":"click","payload":"{}"}'
    bad_body "payload null" -d '{"kind":"click","payload":null}'
    bad_body "an array" -d '["click",{}]'
    bad_body "a number" -d '1'
    bad_body "not JSON" -d 'kind=click'
    bad_body "cut off" -d '{"kind":"click","payload":{'
    bad_body "something after it" -d '{"kind":"click","payload":{}} x'
    bad_body "empty" -d ''
    bad_body "a NUL in the kind" -d '{"kind":"a\u0000b","payload":{}}'
    bad_body "a NUL in the payload" -d '{"kind":"click","payload":{"a":"\u0000"}}'
    { printf '{"kind":"click","payload":{"a":'; head -c 24000 /dev/zero | tr '\0' '['; head -c 24000 /dev/zero | tr '\0' ']'; printf '}}'; } >"$work/deep"
    bad_body "nested 24,000 deep" --data-binary "@$work/deep"
    # 65,536 bytes are the limit: one document on each side of it.
    sized 65537 >"$work/long"
    sized 65536 >"$work/full"
    sized 500000 >"$work/huge"
    bad_body "65,537 bytes" --data-binary "@$work/long"
    bad_body "500,000 bytes" --data-binary "@$work/huge"
    bad_body "65,537 bytes in chunks" -H 'Transfer-Encoding: chunked' --data-binary "@$work/long"
    same "no row from the refused writes" "$(count)" "$before"
    written "65,536 bytes" --data-binary "@$work/full"
    written "the load's own" -d '{"kind":"page_view","payload":{"path":"/pricing","ms":182,"ref":"newsletter"}}'
    id=$(jq .id "$work/body")
    read_case "what was written is read" 200 ". == {\"id\":$id,\"subject\":\"client-bench\",\"kind\":\"page_view\",
        \"payload\":{\"path\":\"/pricing\",\"ms\":182,\"ref\":\"newsletter\"},\"created_at\":.created_at} and
        (.created_at | test(\"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{6}Z\$\"))" "/events/$id"
    same "its time is now" "$(sql -c "SELECT abs(extract(epoch FROM now() - '$(jq -r .created_at "$work/body")')) < 60")" t
    written "an empty payload" -d '{"kind":"click","payload":{}}'
    written "characters of every width, and a fraction" -d '{"kind":"é𝄞\"\\","payload":{"é":"𝄞/","a":1.0,"b":[{}],"c":{"":null}}}'
    id=$(jq .id "$work/body")
    read_case "they come back" 200 '.kind == "é𝄞\"\\" and .payload == {"é":"𝄞/","a":1.0,"b":[{}],"c":{"":null}}' "/events/$id"
    same "a row from each of 4 writes" "$(count)" $((before + 4))
    case_of "another subject can't read it" 404 '. == {"error":"not_found"}' "" "/events/$id" -H "Authorization: Bearer $(token '.sub = "other"')"
    case_of "another subject writes" 201 '.id > 0' "" /events -H "Authorization: Bearer $(token '.sub = "other"')" -d '{"kind":"click","payload":{}}'
    same "under its own name" "$(sql -c "SELECT subject FROM events WHERE id = $(jq .id "$work/body")")" other
}

# A good document of exactly $1 bytes.
sized() {
    local head='{"kind":"click","payload":{"a":"' tail='"}}'
    printf '%s' "$head"
    head -c $(($1 - ${#head} - ${#tail})) /dev/zero | tr '\0' a
    printf '%s' "$tail"
}
written() { case_of "write: $1" 201 '(.id | type) == "number" and (keys == ["id"])' "" /events -H "Authorization: Bearer $both" -H 'Content-Type: application/json' "${@:2}"; }
same() { if [ "$2" = "$3" ]; then pass "$candidate: $1"; else miss "$candidate: $1: $2 instead of $3"; fi; }

database_cases() {
    local connections status=
    sql -c 'ALTER TABLE events RENAME TO away'
    case_of "a read without the table" 500 '. == {"error":"server_error"}' "" /events/1 -H "Authorization: Bearer $both"
    case_of "a write without the table" 500 '. == {"error":"server_error"}' "" /events -H "Authorization: Bearer $both" -d '{"kind":"click","payload":{}}'
    sql -c 'ALTER TABLE away RENAME TO events'
    read_case "a read with the table again" 200 '.id == 1' /events/1
    # More requests at once than connections: all wait their turn, and the server sees no more than the pool.
    seq 200 | xargs -P 16 -I{} curl -s -m 10 -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $both" \
        "http://127.0.0.1:$port/events/{}" | sort | uniq -c | tr -s ' ' >"$work/codes"
    same "200 reads by 16 clients" "$(cat "$work/codes")" " 200 200"
    connections=$(sql -c "SELECT count(*) FROM pg_stat_activity WHERE client_addr IS NOT NULL AND datname = 'events'")
    same "as many connections as the pool" "$connections" "$pool"
    sql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr IS NOT NULL AND datname = 'events'" >/dev/null
    for _ in $(seq 20); do
        status=$(curl -s -m 10 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $both" "http://127.0.0.1:$port/events/1" || true)
    done
    same "it recovers when its connections are ended" "$status" 200
}

# $1 name, $2 what stderr must name, then arguments of docker run that spoil the environment.
spoiled() {
    local name="$candidate: $1" named=$2 code=0
    shift 2
    port=${port:-1} launch "$candidate" --rm "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    if [ "$code" != 1 ]; then
        miss "$name: ended with $code instead of 1: $(head -c 300 "$work/err")"
    elif [ "$(wc -l <"$work/err")" != 1 ] || ! grep -q "$named" "$work/err"; then
        miss "$name: stderr is not one line with $named: $(head -c 500 "$work/err")"
    else
        pass "$name"
    fi
}

environment_cases() {
    local variable
    port=$(free_port)
    for variable in PORT DATABASE_URL POOL CORES PUBLIC_KEY ISSUER AUDIENCE; do
        spoiled "without $variable" "$variable" -e "$variable="
    done
    spoiled "POOL of 0" POOL -e POOL=0
    spoiled "CORES in words" CORES -e CORES=two
    spoiled "PORT past the last" PORT -e PORT=65536
    spoiled "PUBLIC_KEY that is none" PUBLIC_KEY -e PUBLIC_KEY=garbage
    spoiled "LISTEN that is none" LISTEN -e LISTEN=everywhere
    spoiled "no database there" database -e "DATABASE_URL=postgres://check:x@127.0.0.1:$(free_port)/events"
    spoiled "a wrong password" database -e "DATABASE_URL=postgres://check:wrong@127.0.0.1:$database_port/events"
}

# Four seconds of the mix from 64 connections: every answer must be a good one.
load() {
    command -v wrk >/dev/null || stop "--load needs wrk (Debian: apt-get install wrk)"
    cat >"$work/mix.lua" <<LUA
local read = { ["Authorization"] = "Bearer $reader" }
local write = { ["Authorization"] = "Bearer $writer", ["Content-Type"] = "application/json" }
local body = '{"kind":"page_view","payload":{"path":"/pricing","ms":182,"ref":"newsletter"}}'
request = function()
    if math.random() < 0.5 then return wrk.format("GET", "/events/" .. math.random($rows), read) end
    return wrk.format("POST", "/events", write, body)
end
LUA
    wrk -t1 -c64 -d4s --latency -s "$work/mix.lua" "http://127.0.0.1:$port" >"$work/wrk" 2>&1 || true
    if grep -q 'Requests/sec' "$work/wrk" && ! grep -Eq 'Non-2xx|Socket errors' "$work/wrk"; then
        pass "$candidate: load of 64 connections,$(sed -nE 's/^Requests\/sec: +(.*)/ \1 requests\/s/p; s/^ +(50|99)% +(.*)/ p\1 \2/p' "$work/wrk" | paste -sd,)"
    else
        miss "$candidate: load of 64 connections: $(grep -E 'Non-2xx|Socket errors|unable' "$work/wrk" | tr '\n' ' ')"
    fi
    docker logs "check-$run-candidate" >"$work/log" 2>&1
    if grep -iE 'emfile|too many|open files|unavailable' "$work/log" >"$work/shortage"; then
        miss "$candidate: something ran out under load: $(head -n 1 "$work/shortage")"
    fi
}

check_candidate() {
    candidate=$1
    start_candidate "$candidate"
    token_cases
    route_cases
    write_cases
    database_cases
    [ -z "$with_load" ] || load
    stop_candidate "$candidate"
    [ "$candidate" != php-fpm ] || either_dies
    environment_cases
}

check_probe() {
    candidate=probe
    build probe probe
    start_candidate probe
    case_of "anything" 200 '.probe == true' "" /events/1
    case_of "a write" 200 '.probe == true' "" /events -d '{"kind":"click","payload":{}}'
    [ -z "$with_load" ] || load
    stop_candidate probe
    port=$(free_port)
    spoiled "without PORT" PORT -e PORT=
    spoiled "CORES of 0" CORES -e CORES=0
}

check_worker_loop() {
    local code=0
    docker run --rm --label "exp.check=$run" --network host -e DATABASE_URL="$database_url" -v "$here/php:/checked:ro" \
        --entrypoint php exp-check/php-fpm /checked/tests/worker-loop.php >"$work/out" 2>&1 </dev/null || code=$?
    cat "$work/out"
    passed=$((passed + $(grep -c '^PASS' "$work/out" || true)))
    failed=$((failed + $(grep -c '^FAIL' "$work/out" || true)))
    [ "$code" = 0 ] || miss "frankenphp-loop: the script ended with $code"
}

# -- arguments ------------------------------------------------------------------------------------------------------

with_load=
wanted=()
for argument in "$@"; do
    case $argument in
    --load) with_load=yes ;;
    all) wanted+=(go rust php-fpm probe frankenphp-loop) ;;
    go | rust | php-fpm | probe | frankenphp-loop) wanted+=("$argument") ;;
    *) stop "there is no candidate \`$argument\`. Use go, rust, php-fpm, probe, frankenphp-loop or all." ;;
    esac
done
[ ${#wanted[@]} -gt 0 ] || stop "which candidate? Use go, rust, php-fpm, probe, frankenphp-loop or all."
for tool in docker curl openssl jq; do
    command -v "$tool" >/dev/null || stop "$tool is needed and isn't here"
done
docker info >/dev/null 2>&1 || stop "no Docker Engine answers. Start one (tests/docker-engine.sh does)."

make_tokens
start_database
for name in "${wanted[@]}"; do
    case $name in
    go | rust) build "$name" "$name"; check_candidate "$name" ;;
    php-fpm) build php-fpm php Dockerfile.fpm; check_candidate php-fpm ;;
    probe) check_probe ;;
    frankenphp-loop) build php-fpm php Dockerfile.fpm; check_worker_loop ;;
    esac
done

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
