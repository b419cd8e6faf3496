//! What the environment says; every variable is checked before anything starts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use jsonwebtoken::DecodingKey;

pub struct Settings {
    pub listen: SocketAddr,
    pub database: tokio_postgres::Config,
    /// Database connections, all of them opened at start.
    pub pool: usize,
    /// Worker threads of the runtime.
    pub cores: usize,
    pub public_key: DecodingKey,
    pub issuer: String,
    pub audience: String,
}

impl Settings {
    /// The error is one line that names the variable, what it holds and what would be right.
    pub fn read() -> Result<Settings, String> {
        let listen = match std::env::var("LISTEN") {
            Err(std::env::VarError::NotPresent) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => text("LISTEN", "an IP address")?
                .parse()
                .map_err(|_| format!("LISTEN is `{}`; it must be an IP address", shown("LISTEN")))?,
        };
        let port = number("PORT", 65_535)?;
        let database = text("DATABASE_URL", "postgres://user:password@host:port/database")?
            .parse()
            .map_err(|e| format!("DATABASE_URL is not usable: {e}"))?;
        let pool = number("POOL", 10_000)?;
        let cores = number("CORES", 1_024)?;
        let pem = text("PUBLIC_KEY", "the issuer's RSA public key as PEM text")?;
        let public_key = DecodingKey::from_rsa_pem(pem.as_bytes())
            .map_err(|e| format!("PUBLIC_KEY is not an RSA public key in PEM form: {e}"))?;
        Ok(Settings {
            listen: SocketAddr::new(listen, u16::try_from(port).map_err(|e| e.to_string())?),
            database,
            pool,
            cores,
            public_key,
            issuer: text("ISSUER", "the `iss` of acceptable tokens")?,
            audience: text("AUDIENCE", "the `aud` of acceptable tokens")?,
        })
    }
}

fn text(name: &str, meaning: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        Ok(_) | Err(std::env::VarError::NotPresent) => Err(format!("{name} is not set; it must be {meaning}")),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8; it must be {meaning}")),
    }
}

fn number(name: &str, most: usize) -> Result<usize, String> {
    let meaning = format!("a whole number from 1 to {most}");
    let value = text(name, &meaning)?;
    match value.parse() {
        Ok(n) if (1..=most).contains(&n) => Ok(n),
        _ => Err(format!("{name} is `{value}`; it must be {meaning}")),
    }
}

fn shown(name: &str) -> String {
    std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned()
}
