// The requests of the contract and their answers.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bodyLimit is the most bytes of a request body that the contract accepts.
const bodyLimit = 64 << 10

const (
	selectEvent = "SELECT id, subject, kind, payload, created_at FROM events WHERE id = $1 AND subject = $2"
	insertEvent = "INSERT INTO events (subject, kind, payload) VALUES ($1, $2, $3) RETURNING id"
)

type event struct {
	ID        int64           `json:"id"`
	Subject   string          `json:"subject"`
	Kind      string          `json:"kind"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt string          `json:"created_at"`
}

// api answers the contract of ../README.md.
type api struct {
	pool   *pgxpool.Pool
	tokens verifier
}

// statementContext lets a statement end although its client has gone: pgx can only break one off by closing the
// connection, and the next request would pay for a new one.
func statementContext(r *http.Request) context.Context {
	return context.WithoutCancel(r.Context())
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path == "/healthz" {
		// The server only listens once every connection of the pool is open.
		if allowOnly(w, r, http.MethodGet) {
			answer(w, http.StatusOK, map[string]bool{"ok": true})
		}
		return
	}
	token := a.tokens.verify(r)
	if token == nil {
		refuse(w, http.StatusUnauthorized, "invalid_token")
		return
	}
	if path == "/events" {
		if allowOnly(w, r, http.MethodPost) && requireScope(w, token, "events:write") {
			a.write(w, r, token.Subject)
		}
		return
	}
	if id, found := strings.CutPrefix(path, "/events/"); found && !strings.Contains(id, "/") {
		if allowOnly(w, r, http.MethodGet) && requireScope(w, token, "events:read") {
			a.read(w, r, id, token.Subject)
		}
		return
	}
	fail(w, http.StatusNotFound, "not_found")
}

func (a *api) read(w http.ResponseWriter, r *http.Request, text, subject string) {
	id, ok := rowID(text)
	if !ok {
		fail(w, http.StatusNotFound, "not_found")
		return
	}
	var e event
	var createdAt time.Time
	err := a.pool.QueryRow(statementContext(r), selectEvent, id, subject).Scan(&e.ID, &e.Subject, &e.Kind, &e.Payload, &createdAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		fail(w, http.StatusNotFound, "not_found")
	case err != nil:
		databaseFailed(w, err)
	default:
		e.CreatedAt = createdAt.UTC().Format("2006-01-02T15:04:05.000000Z")
		answer(w, http.StatusOK, &e)
	}
}

func (a *api) write(w http.ResponseWriter, r *http.Request, subject string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var request struct {
		Kind    string          `json:"kind"`
		Payload json.RawMessage `json:"payload"`
	}
	if err != nil || json.Unmarshal(body, &request) != nil ||
		request.Kind == "" || len(request.Payload) == 0 || request.Payload[0] != '{' {
		fail(w, http.StatusBadRequest, "invalid_request")
		return
	}
	var id int64
	if err := a.pool.QueryRow(statementContext(r), insertEvent, subject, request.Kind, request.Payload).Scan(&id); err != nil {
		databaseFailed(w, err)
		return
	}
	answer(w, http.StatusCreated, map[string]int64{"id": id})
}

// rowID reads a row's number: decimal digits without sign or leading zero, at least 1, that fit a bigint.
func rowID(text string) (int64, bool) {
	if text == "" || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

func allowOnly(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	fail(w, http.StatusMethodNotAllowed, "method_not_allowed")
	return false
}

func requireScope(w http.ResponseWriter, token *claims, scope string) bool {
	if token.allows(scope) {
		return true
	}
	refuse(w, http.StatusForbidden, "insufficient_scope")
	return false
}

// refuse answers as RFC 6750 §3 asks of a resource server.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("WWW-Authenticate", `Bearer error="`+code+`"`)
	fail(w, status, code)
}

// databaseFailed tells what the client caused from what it didn't: classes 22 (data) and 54 (limits) are values that
// PostgreSQL can't store, such as a NUL in a string or a payload that is nested too deeply.
func databaseFailed(w http.ResponseWriter, err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (strings.HasPrefix(refused.Code, "22") || strings.HasPrefix(refused.Code, "54")) {
		fail(w, http.StatusBadRequest, "invalid_request")
		return
	}
	log.Print("database: ", err)
	fail(w, http.StatusInternalServerError, "server_error")
}

func fail(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]string{"error": code})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		log.Print("answer: ", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone away is no event worth a line per request.
	_, _ = w.Write(text)
}
