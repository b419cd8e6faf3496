//! Tokens for a run: RSA keys that nobody keeps, and JSON Web Tokens signed by them, right ones and the wrong ones of a
//! contract.
//!
//! A token is `base64url(header).base64url(claims).base64url(signature)` (RFC 7515, RFC 7519); the claims are those of an
//! OAuth 2.0 access token (RFC 9068). Signatures are PKCS #1 v1.5 with SHA-2 (RFC 7518 §3.3) by the crate `rsa`, and HMAC
//! by the crate `hmac`. The tokens are put together here and not by a JWT library, because half of them must be wrong in
//! ways that a library rightly refuses to sign.
//!
//! Private keys are dropped as soon as the tokens are signed. Tokens are secrets: they never reach the journal.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use plan::{Credentials, Token};
use rsa::pkcs1v15::SigningKey;
use rsa::pkcs8::{EncodePublicKey as _, LineEnding};
use rsa::sha2::{Digest as _, Sha256, Sha384, Sha512};
use rsa::signature::{SignatureEncoding as _, Signer as _};
use rsa::{RsaPrivateKey, RsaPublicKey};
use serde::Serialize;

use crate::error::StepError;

/// Bits of a key: the least that RFC 7518 §3.3 allows, and what is in use.
const KEY_BITS: usize = 2048;

/// What was minted for a run.
#[derive(Clone, PartialEq, Eq)]
pub struct Minted {
    variables: BTreeMap<String, String>,
    tokens: BTreeMap<String, String>,
}

/// Tokens stay out of logs and panics.
impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.tokens.keys().collect();
        f.debug_struct("Minted").field("variables", &self.variables.keys()).field("tokens", &names).finish()
    }
}

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    /// Symmetric, with the text of the public key as its secret: a verifier that trusts the header takes it.
    Hs256,
    /// Unsigned.
    None,
}

impl Algorithm {
    const ALL: [(&str, Self); 5] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("HS256", Self::Hs256),
        ("none", Self::None),
    ];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, algorithm)| algorithm)
    }
}

/// A key pair; the private half goes with it.
struct Keys {
    private: RsaPrivateKey,
    /// SPKI, as PEM.
    public_pem: String,
    /// Identifies the key: the start of the SHA-256 of its public half.
    id: String,
}

impl Keys {
    fn generate() -> Result<Self, String> {
        let private = RsaPrivateKey::new(&mut rand::thread_rng(), KEY_BITS).map_err(|error| error.to_string())?;
        let public = RsaPublicKey::from(&private);
        let der = public.to_public_key_der().map_err(|error| error.to_string())?;
        let public_pem = public.to_public_key_pem(LineEnding::LF).map_err(|error| error.to_string())?;
        let id = URL_SAFE_NO_PAD.encode(&Sha256::digest(der.as_bytes())[..12]);
        Ok(Self { private, public_pem, id })
    }

    fn sign(&self, algorithm: Algorithm, text: &str) -> Vec<u8> {
        match algorithm {
            Algorithm::Rs256 => SigningKey::<Sha256>::new(self.private.clone()).sign(text.as_bytes()).to_vec(),
            Algorithm::Rs384 => SigningKey::<Sha384>::new(self.private.clone()).sign(text.as_bytes()).to_vec(),
            Algorithm::Rs512 => SigningKey::<Sha512>::new(self.private.clone()).sign(text.as_bytes()).to_vec(),
            Algorithm::Hs256 => keyed_hash(self.public_pem.as_bytes(), text.as_bytes()),
            Algorithm::None => Vec::new(),
        }
    }
}

fn keyed_hash(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut hash = match Hmac::<Sha256>::new_from_slice(secret) {
        Ok(hash) => hash,
        Err(_) => unreachable!("HMAC takes a secret of any length (RFC 2104)"),
    };
    hash.update(text);
    hash.finalize().into_bytes().to_vec()
}

/// The header of a token.
#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'a str,
    kid: &'a str,
}

/// The claims of a token.
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    client_id: &'a str,
    iat: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
}

impl Minted {
    /// Makes a key for each issuer, and its tokens as of `now_unix_s`.
    ///
    /// # Errors
    /// An algorithm that is not known, two tokens of one name, or a system without randomness.
    pub fn mint(credentials: &[Credentials], now_unix_s: i64) -> Result<Self, StepError> {
        let mut minted = Self { variables: BTreeMap::new(), tokens: BTreeMap::new() };
        for issuer in credentials {
            minted.mint_issuer(issuer, now_unix_s)?;
        }
        Ok(minted)
    }

    fn mint_issuer(&mut self, issuer: &Credentials, now_unix_s: i64) -> Result<(), StepError> {
        let what = || format!("the tokens of `{}` could not be minted", issuer.name);
        let no_key = |why: String| StepError::environment(what(), why, "see whether the system gives random numbers");
        let keys = Keys::generate().map_err(no_key)?;
        let mut foreign: Option<Keys> = None;
        for token in &issuer.tokens {
            let minted = match &token.raw {
                Some(raw) => raw.clone(),
                None => {
                    let signer = if token.foreign_key {
                        match &mut foreign {
                            Some(keys) => &*keys,
                            none => &*none.insert(Keys::generate().map_err(no_key)?),
                        }
                    } else {
                        &keys
                    };
                    let name = token.algorithm.as_deref().unwrap_or(&issuer.algorithm);
                    let Some(algorithm) = Algorithm::from_name(name) else {
                        let known: Vec<&str> = Algorithm::ALL.iter().map(|(known, _)| *known).collect();
                        return Err(StepError::step(
                            format!("the token `{}` of `{}` could not be minted", token.name, issuer.name),
                            format!("the algorithm `{name}` is not known"),
                            format!("use one of {}", known.join(", ")),
                        ));
                    };
                    // A forged token names the key that the verifier knows, too.
                    assemble(issuer, token, (signer, &keys.id), (name, algorithm), now_unix_s)
                        .map_err(|error| StepError::step(what(), error.to_string(), "correct the token's claims"))?
                }
            };
            if self.tokens.insert(token.name.clone(), minted).is_some() {
                return Err(StepError::step(
                    format!("the token `{}` is there twice", token.name),
                    "requests name a token without its issuer",
                    "give the tokens different names",
                ));
            }
        }
        for (variable, value) in
            [("public-key", &keys.public_pem), ("issuer", &issuer.issuer), ("audience", &issuer.audience)]
        {
            self.variables.insert(format!("{}.{variable}", issuer.name), value.clone());
        }
        Ok(())
    }

    /// What candidates are told: `NAME.public-key` (SPKI as PEM), `NAME.issuer`, `NAME.audience`.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The tokens by name, as they are sent after `Bearer `.
    pub fn tokens(&self) -> &BTreeMap<String, String> {
        &self.tokens
    }
}

fn assemble(
    issuer: &Credentials,
    token: &Token,
    (keys, kid): (&Keys, &str),
    (name, algorithm): (&str, Algorithm),
    now_unix_s: i64,
) -> Result<String, serde_json::Error> {
    let subject = token.subject.as_deref().unwrap_or(&issuer.subject);
    let claims = Claims {
        iss: token.issuer.as_deref().unwrap_or(&issuer.issuer),
        aud: token.audience.as_deref().unwrap_or(&issuer.audience),
        sub: subject,
        client_id: subject,
        iat: now_unix_s,
        nbf: token.not_before_in_s.map(|seconds| now_unix_s.saturating_add(seconds)),
        exp: now_unix_s.saturating_add(token.expires_in_s),
        scope: token.scope.as_deref(),
    };
    let header = Header { alg: name, typ: "JWT", kid };
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header)?),
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims)?)
    );
    let signature = URL_SAFE_NO_PAD.encode(keys.sign(algorithm, &signed));
    Ok(format!("{signed}.{signature}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jsonwebtoken::errors::ErrorKind;
    use jsonwebtoken::{Algorithm as Verified, DecodingKey, Validation, decode, decode_header};

    use super::*;

    const NOW: i64 = 1_900_000_000;

    fn token(name: &str) -> Token {
        Token {
            name: name.into(),
            scope: Some("events:read".into()),
            expires_in_s: 3_600,
            not_before_in_s: None,
            issuer: None,
            audience: None,
            subject: None,
            algorithm: None,
            foreign_key: false,
            raw: None,
        }
    }

    fn oauth2(tokens: Vec<Token>) -> Credentials {
        Credentials {
            name: "oauth2".into(),
            algorithm: "RS256".into(),
            issuer: "https://issuer.test".into(),
            audience: "events".into(),
            subject: "client-bench".into(),
            tokens,
        }
    }

    /// What a verifier that accepts this algorithm, with this key, says of a token as of `now`.
    fn verdict(token: &str, algorithm: Verified, key: &DecodingKey, now: i64) -> Result<serde_json::Value, ErrorKind> {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&["https://issuer.test"]);
        validation.set_audience(&["events"]);
        // The library has no clock to set: times are compared here.
        validation.validate_exp = false;
        validation.required_spec_claims =
            ["iss", "aud", "sub", "exp"].into_iter().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();
        let claims = decode::<serde_json::Value>(token, key, &validation).map_err(|error| error.into_kind())?.claims;
        if claims["exp"].as_i64().is_none_or(|exp| exp <= now) {
            return Err(ErrorKind::ExpiredSignature);
        }
        if claims["nbf"].as_i64().is_some_and(|nbf| nbf > now) {
            return Err(ErrorKind::ImmatureSignature);
        }
        Ok(claims)
    }

    #[test]
    fn right_tokens_verify_and_wrong_ones_fail_for_their_reason() {
        let with = |name: &str, change: fn(&mut Token)| {
            let mut token = token(name);
            change(&mut token);
            token
        };
        let minted = Minted::mint(
            &[oauth2(vec![
                token("reader"),
                with("rs384", |t| t.algorithm = Some("RS384".into())),
                with("rs512", |t| t.algorithm = Some("RS512".into())),
                with("unscoped", |t| t.scope = None),
                with("expired", |t| t.expires_in_s = -3_600),
                with("early", |t| t.not_before_in_s = Some(3_600)),
                with("issuer", |t| t.issuer = Some("https://other.test".into())),
                with("audience", |t| t.audience = Some("orders".into())),
                with("subject", |t| t.subject = Some("client-other".into())),
                with("foreign", |t| t.foreign_key = true),
                with("unsigned", |t| t.algorithm = Some("none".into())),
                with("hmac", |t| t.algorithm = Some("HS256".into())),
                with("garbage", |t| t.raw = Some("not.a.token".into())),
            ])],
            NOW,
        )
        .expect("minted");
        let pem = &minted.variables()["oauth2.public-key"];
        assert!(
            pem.starts_with("-----BEGIN PUBLIC KEY-----\n") && pem.ends_with("-----END PUBLIC KEY-----\n"),
            "{pem}"
        );
        let key = DecodingKey::from_rsa_pem(pem.as_bytes()).expect("a public key");
        let check = |name: &str, algorithm| verdict(&minted.tokens()[name], algorithm, &key, NOW);

        let claims = check("reader", Verified::RS256).expect("right");
        let expected = serde_json::json!({
            "iss": "https://issuer.test", "aud": "events", "sub": "client-bench", "client_id": "client-bench",
            "iat": NOW, "exp": NOW + 3_600, "scope": "events:read"
        });
        assert_eq!(claims, expected);
        let header = decode_header(&minted.tokens()["reader"]).expect("a header");
        assert_eq!((header.typ.as_deref(), header.kid.map(|kid| kid.len())), (Some("JWT"), Some(16)));
        assert!(check("rs384", Verified::RS384).is_ok() && check("rs512", Verified::RS512).is_ok());
        assert!(check("unscoped", Verified::RS256).expect("right").get("scope").is_none());
        assert_eq!(check("subject", Verified::RS256).expect("right")["sub"], "client-other");
        for (name, reason) in [
            ("expired", ErrorKind::ExpiredSignature),
            ("early", ErrorKind::ImmatureSignature),
            ("issuer", ErrorKind::InvalidIssuer),
            ("audience", ErrorKind::InvalidAudience),
            ("foreign", ErrorKind::InvalidSignature),
            ("hmac", ErrorKind::InvalidAlgorithm),
        ] {
            assert_eq!(check(name, Verified::RS256), Err(reason), "{name}");
        }
        // The known attack: a verifier that lets the token choose takes it.
        let secret = DecodingKey::from_secret(pem.as_bytes());
        assert!(verdict(&minted.tokens()["hmac"], Verified::HS256, &secret, NOW).is_ok());
        let unsigned: Vec<&str> = minted.tokens()["unsigned"].split('.').collect();
        assert_eq!((unsigned.len(), unsigned[2]), (3, ""));
        assert_eq!(
            URL_SAFE_NO_PAD.decode(unsigned[0]).map(|header| header.starts_with(b"{\"alg\":\"none\"")),
            Ok(true)
        );
        assert_eq!(minted.tokens()["garbage"], "not.a.token");
        let shown = format!("{minted:?}");
        assert!(!shown.contains(&minted.tokens()["reader"][..20]), "tokens stay hidden: {shown}");
    }

    #[test]
    fn what_can_not_be_minted_is_named() {
        let mut odd = token("odd");
        odd.algorithm = Some("ES999".into());
        for (tokens, says) in [
            (vec![odd], "the token `odd` of `oauth2`"),
            (vec![token("reader"), token("reader")], "the token `reader` is there twice"),
        ] {
            let error = Minted::mint(&[oauth2(tokens)], NOW).expect_err(says);
            assert!(error.failure.what.contains(says), "{error:?}");
        }
        assert_eq!(Minted::mint(&[], NOW).map(|minted| minted.tokens().len()), Ok(0));
    }
}
