// Bearer tokens: which are accepted, and what they allow.

package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// claims are those that the service reads; the library checks iss, aud, exp and nbf among the registered ones.
type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope"`
}

// allows tells whether the space-separated scope of the token (RFC 6749 §3.3) has this one.
func (c *claims) allows(scope string) bool {
	return slices.Contains(strings.Split(c.Scope, " "), scope)
}

// verifier checks bearer tokens. It holds the parsed key and nothing that a request brought: every request is verified.
type verifier struct {
	parser *jwt.Parser
	key    any
}

func newVerifier(s settings) verifier {
	return verifier{
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{"RS256"}),
			jwt.WithIssuer(s.issuer),
			jwt.WithAudience(s.audience),
			jwt.WithExpirationRequired(),
		),
		key: s.publicKey,
	}
}

// verify gives the claims of the request's token, or nil where there is none or it is not acceptable.
func (v verifier) verify(r *http.Request) *claims {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	var c claims
	_, err := v.parser.ParseWithClaims(strings.TrimSpace(token), &c, func(*jwt.Token) (any, error) { return v.key, nil })
	if err != nil || c.Subject == "" {
		return nil
	}
	return &c
}
