//! How requests travel: the protocol on each connection, TLS, and a proxy between generator and target.

use serde::{Deserialize, Serialize};

/// The protocol on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1: one request at a time.
    #[default]
    Http1,
    /// HTTP/2: several at a time. Without TLS by prior knowledge, with TLS by ALPN.
    Http2,
}

/// How the requests of a load travel to their target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Travel {
    /// The protocol.
    pub protocol: Protocol,
    /// Requests in flight at one time on each connection; 1 for HTTP/1.1.
    pub in_flight: u32,
    /// Address and port of an HTTP proxy that every connection goes through.
    pub proxy: Option<String>,
}

impl Travel {
    /// Whether it is HTTP/1.1 straight to the target.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Travel {
    /// HTTP/1.1, straight to the target.
    fn default() -> Self {
        Self { protocol: Protocol::Http1, in_flight: 1, proxy: None }
    }
}

/// That a server speaks TLS, and how its certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tls {
    /// The certificates that are trusted; `None`: those that the generator's system trusts.
    pub ca: Option<Certificates>,
    /// The name that the certificate must have, sent as SNI; `None`: the host that is asked.
    pub name: Option<String>,
    /// Any certificate is taken. The report says so.
    pub unchecked: bool,
}

/// Certificates in PEM, with their text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Certificates {
    /// Path, relative to the plan's root.
    pub path: String,
    /// Their text.
    pub text: String,
}
