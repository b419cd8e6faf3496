<?php

declare(strict_types=1);

// Runs FrankenPHP's worker script as it is, with a stand-in for frankenphp_handle_request: the queue of requests below
// instead of a server. Everything else is real: the handler, the tokens, PostgreSQL.
//
//   DATABASE_URL=postgres://… php tests/worker-loop.php
//
// The database needs the table of experiments/sql with a row 1 of the seed. Prints a line per case; ends with 0 if all
// passed. `check.sh frankenphp-loop` gives it what it needs.

namespace Candidate {
    // PHP's command line keeps no headers. The handler's unqualified calls find these two first.
    function http_response_code(int $status): void
    {
        \WorkerLoop::$status = $status;
    }

    function header(string $line): void
    {
        [$name, $value] = explode(': ', $line, 2);
        \WorkerLoop::$headers[$name] = $value;
        if ($name === 'WWW-Authenticate') {
            \WorkerLoop::$status = 401; // as PHP's own does
        }
    }
}

namespace {
    /** php://input with the body of the request that is being answered. */
    final class RequestBody
    {
        /** @var resource|null set by PHP */
        public $context;
        private int $read = 0;

        public function stream_open(string $path): bool
        {
            return $path === 'php://input';
        }

        public function stream_read(int $count): string
        {
            $bytes = substr(WorkerLoop::$body, $this->read, $count);
            $this->read += strlen($bytes);
            return $bytes;
        }

        public function stream_eof(): bool
        {
            return $this->read >= strlen(WorkerLoop::$body);
        }

        public function stream_stat(): array
        {
            return [];
        }
    }

    final class WorkerLoop
    {
        public static int $status = 0;
        /** @var array<string, string> */
        public static array $headers = [];
        public static string $body = '';
        public static int $failed = 0;
        public static int $passed = 0;
        /** @var list<array{string, callable(): array{string, string, ?string, string}, callable(string): bool}> */
        public static array $queue = [];

        public static function check(string $name, bool $good, string $seen): void
        {
            $good ? self::$passed++ : self::$failed++;
            echo $good ? "PASS  frankenphp-loop: $name\n" : "FAIL  frankenphp-loop: $name: $seen\n";
        }

        /** Adds a request. $expect gets the decoded answer. */
        public static function request(
            string $name,
            string $method,
            string $path,
            ?string $token,
            string $body,
            int $status,
            callable $expect,
            ?callable $before = null,
        ): void {
            self::$queue[] = [$name, $method, $path, $token, $body, $status, $expect, $before];
        }

        /** What FrankenPHP does for one request: new globals, the callback, the answer. False: the worker shall end. */
        public static function next(callable $serve): bool
        {
            $request = array_shift(self::$queue);
            if ($request === null) {
                return false;
            }
            [$name, $method, $path, $token, self::$body, $status, $expect, $before] = $request;
            if ($before !== null) {
                $before();
            }
            $_SERVER = ['REQUEST_METHOD' => $method, 'REQUEST_URI' => $path];
            if ($token !== null) {
                $_SERVER['HTTP_AUTHORIZATION'] = "Bearer $token";
            }
            self::$status = 0;
            self::$headers = [];
            ob_start();
            $serve();
            $answer = (string) ob_get_clean();
            $good = self::$status === $status
                && (self::$headers['Content-Type'] ?? '') === 'application/json'
                && (self::$headers['Content-Length'] ?? '') === (string) strlen($answer)
                && $expect(json_decode($answer, true));
            self::check($name, $good, self::$status . ' ' . json_encode(self::$headers) . " $answer");
            return true;
        }
    }

    function frankenphp_handle_request(callable $serve): bool
    {
        return WorkerLoop::next($serve);
    }

    function base64url(string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
    }

    // An image without the openssl package has no settings for it; none are needed.
    $key = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_RSA, 'private_key_bits' => 2048, 'config' => '/dev/null']);
    if ($key === false) {
        fwrite(STDERR, 'the key pair can\'t be made: ' . openssl_error_string() . "\n");
        exit(2);
    }
    putenv('PUBLIC_KEY=' . openssl_pkey_get_details($key)['key']);
    putenv('ISSUER=https://issuer.test');
    putenv('AUDIENCE=events');

    $mint = static function (array $amended) use ($key): string {
        $claims = $amended + [
            'iss' => 'https://issuer.test',
            'aud' => 'events',
            'sub' => 'client-bench',
            'exp' => time() + 600,
            'scope' => 'events:read events:write',
        ];
        $signed = base64url('{"alg":"RS256"}') . '.' . base64url(json_encode($claims));
        openssl_sign($signed, $signature, $key, OPENSSL_ALGO_SHA256);
        return $signed . '.' . base64url($signature);
    };
    $good = $mint([]);
    $reader = $mint(['scope' => 'events:read']);

    require_once __DIR__ . '/../src/all.php';
    $settings = Candidate\Settings::read();
    $observer = new PDO($settings->dsn, $settings->databaseUser, $settings->databasePassword, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    $workers = static fn (): array => $observer->query(
        'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND client_addr IS NOT NULL AND pid <> pg_backend_pid()'
    )->fetchAll(PDO::FETCH_COLUMN);
    $rows = static fn (): int => (int) $observer->query('SELECT count(*) FROM events')->fetchColumn();
    $others = $workers();
    $mine = static fn (): array => array_values(array_diff($workers(), $others));

    $connection = null;
    $written = null;
    $before = $rows();
    $is = static fn (array $expected): callable => static fn (mixed $answer): bool => $answer === $expected;

    WorkerLoop::request('health', 'GET', '/healthz', null, '', 200, $is(['ok' => true]));
    WorkerLoop::request('a read', 'GET', '/events/1', $good, '', 200, static function (mixed $answer) use (&$connection, $mine): bool {
        $connection = $mine();
        return $answer['id'] === 1 && $answer['kind'] === 'click' && $answer['payload']['path'] === '/p/1'
            && $answer['created_at'] === '2026-09-01T00:00:01.000000Z';
    });
    WorkerLoop::request('the next request without token: nothing of the last one is left', 'GET', '/events/1', null, '', 401, $is(['error' => 'invalid_token']));
    WorkerLoop::request('a body', 'POST', '/events', $good, '{"kind":"click","payload":{"n":1}}', 201, static function (mixed $answer) use (&$written): bool {
        $written = $answer['id'];
        return is_int($written);
    });
    WorkerLoop::request('the next request without body: nothing of the last one is left', 'POST', '/events', $good, '', 400, $is(['error' => 'invalid_request']));
    WorkerLoop::request('a token that may only read', 'POST', '/events', $reader, '{"kind":"click","payload":{}}', 403, $is(['error' => 'insufficient_scope']));
    WorkerLoop::request('and one that may write after it', 'POST', '/events', $good, '{"kind":"click","payload":{}}', 201, static fn (mixed $answer): bool => $answer['id'] > $written);
    WorkerLoop::request("another subject's own view", 'GET', '/events/1', $mint(['sub' => 'other']), '', 404, $is(['error' => 'not_found']));
    WorkerLoop::request('65,536 bytes', 'POST', '/events', $good, str_pad('{"kind":"click","payload":{}}', 65_536), 201, static fn (mixed $answer): bool => is_int($answer['id']));
    WorkerLoop::request('65,537 bytes', 'POST', '/events', $good, str_pad('{"kind":"click","payload":{}}', 65_537), 400, $is(['error' => 'invalid_request']));
    WorkerLoop::request('a value that the database refuses', 'POST', '/events', $good, '{"kind":"a\u0000","payload":{}}', 400, $is(['error' => 'invalid_request']));
    for ($i = 1; $i <= 50; $i++) {
        WorkerLoop::request("read $i in a row", 'GET', "/events/$i", $good, '', 200, static fn (mixed $answer): bool => $answer['id'] === $i);
    }
    WorkerLoop::request('all on one connection', 'GET', '/healthz', null, '', 200, static function () use (&$connection, $mine): bool {
        return count($connection) === 1 && $mine() === $connection;
    });
    WorkerLoop::request(
        'the connection is ended: this request fails',
        'GET',
        '/events/1',
        $good,
        '',
        500,
        $is(['error' => 'server_error']),
        static function () use (&$connection, $observer): void {
            $observer->query('SELECT pg_terminate_backend(' . (int) $connection[0] . ', 5000)');
        },
    );
    WorkerLoop::request('the next one has a new connection', 'GET', '/events/1', $good, '', 200, static function (mixed $answer) use (&$connection, $mine): bool {
        return $answer['id'] === 1 && count($mine()) === 1 && $mine() !== $connection;
    });

    $queued = count(WorkerLoop::$queue);
    stream_wrapper_unregister('php');
    stream_wrapper_register('php', RequestBody::class);
    require __DIR__ . '/../frankenphp/worker.php';
    stream_wrapper_restore('php');

    $answered = WorkerLoop::$passed + WorkerLoop::$failed;
    WorkerLoop::check("the worker ends when it is told to, all $queued requests answered", $answered === $queued, "$answered answered");
    WorkerLoop::check('a row from each of 3 writes', $rows() === $before + 3, $rows() - $before . ' rows');
    exit(WorkerLoop::$failed === 0 ? 0 : 1);
}
