// The Go candidate: net/http, pgx and golang-jwt behind the contract of ../README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("go: ")
	if err := run(); err != nil {
		// One line, whatever the libraries have to say.
		log.Fatal(strings.Join(strings.Fields(err.Error()), " "))
	}
}

func run() error {
	settings, err := readSettings()
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(settings.cores)
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	pool, err := openPool(ended, settings)
	if err != nil {
		return err
	}
	defer pool.Close()

	server := &http.Server{
		Handler:           &api{pool: pool, tokens: newVerifier(settings)},
		ReadHeaderTimeout: 5 * time.Second,
		// Longer than any pause between two windows of a study: a connection closed under the generator is an error there.
		IdleTimeout: time.Hour,
	}
	listener, err := net.Listen("tcp", settings.listen)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ended.Done():
	}
	// What runs may end; idle connections do not keep the process.
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(grace); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return nil
}

// openPool opens every connection before the server listens, so that no measured request pays for one.
func openPool(ctx context.Context, s settings) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.databaseURL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL is not usable: %w", err)
	}
	config.MinConns, config.MaxConns = s.pool, s.pool
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("the database pool can't be made: %w", err)
	}
	held := make([]*pgxpool.Conn, 0, s.pool)
	for range s.pool {
		connection, err := pool.Acquire(ctx)
		if err != nil {
			pool.Close()
			return nil, fmt.Errorf("connection %d of %d to the database failed: %w", len(held)+1, s.pool, err)
		}
		held = append(held, connection)
	}
	for _, connection := range held {
		connection.Release()
	}
	return pool, nil
}
