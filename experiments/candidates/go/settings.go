// The environment: what is read, what is refused.

package main

import (
	"crypto/rsa"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/golang-jwt/jwt/v5"
)

// settings is what the environment says; every field is checked before anything starts.
type settings struct {
	listen      string // address and port
	databaseURL string
	pool        int32 // database connections, all of them opened at start
	cores       int   // GOMAXPROCS
	publicKey   *rsa.PublicKey
	issuer      string
	audience    string
}

// readSettings fails with one line that names the variable, what it holds and what would be right.
func readSettings() (settings, error) {
	var s settings
	var problem error
	text := func(name, meaning string) string {
		value := os.Getenv(name)
		if value == "" && problem == nil {
			problem = fmt.Errorf("%s is not set; it must be %s", name, meaning)
		}
		return value
	}
	number := func(name string, most int) int {
		meaning := fmt.Sprintf("a whole number from 1 to %d", most)
		value := text(name, meaning)
		n, err := strconv.Atoi(value)
		if problem == nil && (err != nil || n < 1 || n > most) {
			problem = fmt.Errorf("%s is `%s`; it must be %s", name, value, meaning)
		}
		return n
	}

	listen := os.Getenv("LISTEN")
	if listen == "" {
		listen = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(listen); err != nil {
		problem = fmt.Errorf("LISTEN is `%s`; it must be an IP address", listen)
	}
	s.listen = net.JoinHostPort(listen, strconv.Itoa(number("PORT", 65535)))
	s.databaseURL = text("DATABASE_URL", "postgres://user:password@host:port/database")
	s.pool = int32(number("POOL", 10000))
	s.cores = number("CORES", 1024)
	pem := text("PUBLIC_KEY", "the issuer's RSA public key as PEM text")
	s.issuer = text("ISSUER", "the `iss` of acceptable tokens")
	s.audience = text("AUDIENCE", "the `aud` of acceptable tokens")
	if problem != nil {
		return s, problem
	}
	key, err := jwt.ParseRSAPublicKeyFromPEM([]byte(pem))
	if err != nil {
		return s, fmt.Errorf("PUBLIC_KEY is not an RSA public key in PEM form: %w", err)
	}
	s.publicKey = key
	return s, nil
}
