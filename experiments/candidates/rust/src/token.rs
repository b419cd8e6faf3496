//! Bearer tokens. The key is parsed once; every request is verified, and nothing that a request brought is kept.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;

use crate::settings::Settings;

/// The claims that the service reads; iss, aud, exp and nbf are the library's to check.
#[derive(Deserialize)]
pub struct Claims {
    pub sub: String,
    #[serde(default)]
    scope: String,
}

impl Claims {
    /// Whether the space-separated scope of the token (RFC 6749 §3.3) has this one.
    pub fn allow(&self, scope: &str) -> bool {
        self.scope.split(' ').any(|s| s == scope)
    }
}

pub struct Verifier {
    key: DecodingKey,
    validation: Validation,
}

impl Verifier {
    pub fn new(settings: &Settings) -> Verifier {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_issuer(&[&settings.issuer]);
        validation.set_audience(&[&settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        // RFC 7519 §4.1.4: a token is refused on its `exp` already. The library by itself would take it a minute longer.
        validation.leeway = 0;
        validation.reject_tokens_expiring_in_less_than = 1;
        Verifier { key: settings.public_key.clone(), validation }
    }

    /// The claims of the request's token, or nothing where there is none or it is not acceptable.
    pub fn verify(&self, headers: &HeaderMap) -> Option<Claims> {
        let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let claims = decode::<Claims>(token.trim(), &self.key, &self.validation).ok()?.claims;
        (!claims.sub.is_empty()).then_some(claims)
    }
}
