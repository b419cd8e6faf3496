//! The requests of the contract (../README.md) and their answers.

use deadpool_postgres::{Pool, PoolError};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use tokio_postgres::types::Json;

use crate::token::{Claims, Verifier};

/// The most bytes of a request body that the contract accepts.
const BODY_LIMIT: usize = 64 << 10;
/// A longer body is read and thrown away up to here, because a client that is still sending may never see the answer.
const DRAIN_LIMIT: usize = 1 << 20;

const SELECT_EVENT: &str = "SELECT id, subject, kind, payload, created_at FROM events WHERE id = $1 AND subject = $2";
const INSERT_EVENT: &str = "INSERT INTO events (subject, kind, payload) VALUES ($1, $2, $3) RETURNING id";

type Answer = Response<Full<Bytes>>;

pub struct Api {
    pub pool: Pool,
    pub verifier: Verifier,
}

/// Every answer but the good ones.
enum Refusal {
    InvalidToken,
    InsufficientScope,
    InvalidRequest,
    NotFound,
    MethodNotAllowed { allowed: &'static str },
    Database(String),
}

#[derive(Serialize)]
struct Event<'a> {
    id: i64,
    subject: &'a str,
    kind: &'a str,
    payload: &'a RawValue,
    created_at: String,
}

#[derive(Deserialize)]
struct NewEvent<'a> {
    kind: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Api {
    pub async fn answer(&self, request: Request<Incoming>) -> Answer {
        self.route(request).await.unwrap_or_else(Refusal::answer)
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        if request.uri().path() == "/healthz" {
            // The server only listens once every connection of the pool is open.
            allow_only(&request, &Method::GET, "GET")?;
            return Ok(json(StatusCode::OK, br#"{"ok":true}"#.to_vec()));
        }
        let claims = self.verifier.verify(request.headers()).ok_or(Refusal::InvalidToken)?;
        if request.uri().path() == "/events" {
            allow_only(&request, &Method::POST, "POST")?;
            require(&claims, "events:write")?;
            return self.write(request.into_body(), &claims).await;
        }
        match request.uri().path().strip_prefix("/events/") {
            Some(id) if !id.contains('/') => {
                allow_only(&request, &Method::GET, "GET")?;
                require(&claims, "events:read")?;
                self.read(id, &claims).await
            }
            _ => Err(Refusal::NotFound),
        }
    }

    async fn read(&self, id: &str, claims: &Claims) -> Result<Answer, Refusal> {
        let id = row_id(id).ok_or(Refusal::NotFound)?;
        let connection = self.pool.get().await?;
        let statement = connection.prepare_cached(SELECT_EVENT).await?;
        let row = connection.query_opt(&statement, &[&id, &claims.sub]).await?.ok_or(Refusal::NotFound)?;
        let created_at: OffsetDateTime = row.try_get(4)?;
        let Json(payload): Json<&RawValue> = row.try_get(3)?;
        let event = Event {
            id: row.try_get(0)?,
            subject: row.try_get(1)?,
            kind: row.try_get(2)?,
            payload,
            created_at: rfc3339(created_at),
        };
        Ok(json(StatusCode::OK, serde_json::to_vec(&event).map_err(|e| Refusal::Database(e.to_string()))?))
    }

    async fn write(&self, body: Incoming, claims: &Claims) -> Result<Answer, Refusal> {
        let body = read_body(body).await.ok_or(Refusal::InvalidRequest)?;
        let event = new_event(&body).ok_or(Refusal::InvalidRequest)?;
        let connection = self.pool.get().await?;
        let statement = connection.prepare_cached(INSERT_EVENT).await?;
        let row = connection.query_one(&statement, &[&claims.sub, &event.kind, &Json(event.payload)]).await?;
        let id: i64 = row.try_get(0)?;
        Ok(json(StatusCode::CREATED, format!(r#"{{"id":{id}}}"#).into_bytes()))
    }
}

/// A row's number: decimal digits without sign or leading zero, at least 1, that fit a bigint.
fn row_id(text: &str) -> Option<i64> {
    if !text.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return None;
    }
    text.parse().ok()
}

/// An object with a non-empty `kind` and an object as `payload`. The first byte is looked at because serde would also
/// take an array of the two.
fn new_event(body: &[u8]) -> Option<NewEvent<'_>> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let event: NewEvent = serde_json::from_slice(body).ok()?;
    (!event.kind.is_empty() && event.payload.get().starts_with('{')).then_some(event)
}

/// The whole body, or nothing when it is longer than the limit or breaks off.
async fn read_body(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        length += data.len();
        if length > DRAIN_LIMIT {
            return None;
        }
        if length <= BODY_LIMIT {
            bytes.extend_from_slice(&data);
        }
    }
    (length <= BODY_LIMIT).then_some(bytes)
}

/// UTC with six decimals, as PostgreSQL keeps it.
fn rfc3339(t: OffsetDateTime) -> String {
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        t.year(),
        u8::from(t.month()),
        t.day(),
        t.hour(),
        t.minute(),
        t.second(),
        t.microsecond()
    )
}

fn allow_only(request: &Request<Incoming>, method: &Method, allowed: &'static str) -> Result<(), Refusal> {
    if request.method() == method { Ok(()) } else { Err(Refusal::MethodNotAllowed { allowed }) }
}

fn require(claims: &Claims, scope: &str) -> Result<(), Refusal> {
    if claims.allow(scope) { Ok(()) } else { Err(Refusal::InsufficientScope) }
}

fn json(status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

impl Refusal {
    fn answer(self) -> Answer {
        let (status, code) = match &self {
            Refusal::InvalidToken => (StatusCode::UNAUTHORIZED, "invalid_token"),
            Refusal::InsufficientScope => (StatusCode::FORBIDDEN, "insufficient_scope"),
            Refusal::InvalidRequest => (StatusCode::BAD_REQUEST, "invalid_request"),
            Refusal::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Refusal::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Refusal::Database(reason) => {
                eprintln!("rust: database: {reason}");
                (StatusCode::INTERNAL_SERVER_ERROR, "server_error")
            }
        };
        let mut answer = json(status, format!(r#"{{"error":"{code}"}}"#).into_bytes());
        // RFC 6750 §3 asks a resource server for the challenge, RFC 9110 §15.5.6 a 405 for the methods.
        match self {
            Refusal::InvalidToken => {
                let challenge = HeaderValue::from_static(r#"Bearer error="invalid_token""#);
                answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            Refusal::InsufficientScope => {
                let challenge = HeaderValue::from_static(r#"Bearer error="insufficient_scope""#);
                answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            Refusal::MethodNotAllowed { allowed } => {
                answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            }
            Refusal::InvalidRequest | Refusal::NotFound | Refusal::Database(_) => {}
        }
        answer
    }
}

impl From<PoolError> for Refusal {
    fn from(error: PoolError) -> Refusal {
        Refusal::Database(error.to_string())
    }
}

/// Classes 22 (data) and 54 (limits) are values that PostgreSQL can't store, such as a NUL in a string or a payload that
/// is nested too deeply: the client's doing. Everything else is not.
impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Refusal {
        match error.code() {
            Some(state) if state.code().starts_with("22") || state.code().starts_with("54") => Refusal::InvalidRequest,
            _ => Refusal::Database(error.to_string()),
        }
    }
}
