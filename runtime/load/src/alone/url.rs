//! Reading a URL, and finding the address of its host.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::LoadError;

/// A URL in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Host, with the port where the URL has one.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// `https`.
    pub is_tls: bool,
}

impl<'a> Place<'a> {
    /// The host's name or address, without port and brackets.
    pub fn name(&self) -> &'a str {
        let host = match self.port() {
            Some(_) => self.authority.rsplit_once(':').map_or(self.authority, |(host, _)| host),
            None => self.authority,
        };
        host.trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> Option<u16> {
        let (host, port) = self.authority.rsplit_once(':')?;
        // Colons within brackets are those of an address.
        if host.starts_with('[') && !host.ends_with(']') { None } else { port.parse().ok() }
    }
}

/// Takes a URL apart.
///
/// # Errors
/// When it is none that can be loaded, with the way to write it.
pub fn split(url: &str) -> Result<Place<'_>, LoadError> {
    let next = "write it as http://127.0.0.1:8080/path";
    let (rest, is_tls) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Err(LoadError::job(format!("`{url}` is not a URL of http or https"), next)),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        let instead = "give the token with --bearer, or the header with -H";
        return Err(LoadError::job(format!("`{url}` holds a user's name, which is not sent"), instead));
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(LoadError::job(format!("`{url}` names no host"), next));
    }
    if let Some((host, port)) = authority.rsplit_once(':')
        && (!host.starts_with('[') || host.ends_with(']'))
        && port.parse::<u16>().is_err()
    {
        return Err(LoadError::job(format!("`{port}` in `{url}` is no port"), "give one from 1 to 65535"));
    }
    let path = path.split('#').next().unwrap_or_default();
    let path = match path {
        "" => "/",
        path if path.starts_with('/') => path,
        _ => return Err(LoadError::job(format!("`{url}` has a query without a path"), next)),
    };
    if path.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return Err(LoadError::job(format!("the path of `{url}` holds a blank"), "write it as %20"));
    }
    Ok(Place { authority, path, is_tls })
}

/// The address of a URL's host.
///
/// # Errors
/// When it has none, in the system's words.
pub fn resolve(url: &str, place: &Place<'_>) -> Result<SocketAddr, LoadError> {
    let port = place.port().unwrap_or(if place.is_tls { 443 } else { 80 });
    let addresses: Vec<SocketAddr> = (place.name(), port)
        .to_socket_addrs()
        .map_err(|error| {
            let words = error.to_string();
            let words = words.rsplit_once(": ").map_or(words.as_str(), |(_, last)| last).to_owned();
            LoadError::NoAddress {
                what: format!("the name `{}` of `{url}` can't be resolved: {words}", place.name()),
                next: "check its spelling, and that it is known here (`getent hosts NAME`); --connect-to ADDRESS:PORT goes without",
            }
        })?
        .collect();
    // A name with addresses of both families: the older one is what most servers under test listen on.
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or_else(|| addresses.first())
        .copied()
        .ok_or_else(|| LoadError::job(format!("the host of `{url}` has no address"), "check its name and port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, authority, name, path, is_tls) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", "/", false),
            ("https://localhost/a?b=c#d", "localhost", "localhost", "/a?b=c", true),
            ("http://[::1]:80/x", "[::1]:80", "::1", "/x", false),
            ("http://[::1]/x", "[::1]", "::1", "/x", false),
        ] {
            let place = split(url).expect("a URL");
            assert_eq!((place.authority, place.name(), place.path, place.is_tls), (authority, name, path, is_tls));
            assert!(resolve(url, &place).is_ok_and(|address| address.ip().is_loopback()), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_way_to_write_it() {
        for (url, words) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/path"),
            ("ftp://x/", "not a URL of http or https"),
            ("http:///x", "names no host"),
            ("http://:80/x", "names no host"),
            ("http://user@host/", "--bearer"),
            ("http://host?x", "query without a path"),
            ("http://host:http/", "`http` in `http://host:http/` is no port"),
            ("http://host:99999/", "no port"),
            ("http://host/a b", "%20"),
        ] {
            let error = split(url).expect_err("no URL").to_string();
            assert!(error.contains(words), "{url}: {error}");
        }
        let url = "http://no-such-name.invalid/";
        let error = resolve(url, &split(url).expect("a URL")).expect_err("no address").to_string();
        assert!(error.contains("`no-such-name.invalid`") && error.contains("can't be resolved"), "{error}");
    }
}
