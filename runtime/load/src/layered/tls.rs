//! TLS to a target: whom to trust, and what went wrong in plain words.

use std::io;
use std::sync::Arc;

use plan::Tls;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::error::LoadError;

/// Why a connection could not be secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// Nobody that is trusted signed the certificate.
    UnknownIssuer,
    /// The certificate is for other names.
    WrongName,
    /// The certificate is unfit for another reason.
    Certificate,
    /// What came is no TLS.
    NotTls,
    /// Both sides have no protocol above TLS in common (ALPN).
    NoProtocol,
    /// The target refused with this alert.
    Refused(u8),
    /// The target ended the connection within the handshake.
    Closed,
    /// Another error.
    Other,
}

impl Fault {
    /// In words, without values of one connection.
    pub fn words(self) -> String {
        match self {
            Self::Expired => "the target's certificate has expired".into(),
            Self::NotYetValid => "the target's certificate is not valid yet".into(),
            Self::UnknownIssuer => "nobody that is trusted signed the target's certificate".into(),
            Self::WrongName => "the target's certificate is for another name".into(),
            Self::Certificate => "the target's certificate is unfit".into(),
            Self::NotTls => "the target does not speak TLS on this port".into(),
            Self::NoProtocol => "the target does not speak this protocol over TLS".into(),
            Self::Refused(code) => format!("the target refused TLS with {:?}", AlertDescription::from(code)),
            Self::Closed => "the target ended the connection within the TLS handshake".into(),
            Self::Other => "TLS failed".into(),
        }
    }

    /// What to do next.
    pub fn next(self) -> &'static str {
        match self {
            Self::Expired | Self::NotYetValid => "renew the certificate (and check this machine's clock)",
            Self::UnknownIssuer => "name the certificate of who signed it (`tls ca=`; `exp load --cacert FILE`)",
            Self::WrongName => "give the name that it has (`tls name=`; for `exp load` in the URL, with --connect-to)",
            Self::NotTls => "leave TLS out (http:// in place of https://), or give the port that speaks it",
            Self::NoProtocol => "choose another `protocol` (no --http2), or switch it on at the target",
            Self::Certificate | Self::Refused(_) | Self::Closed | Self::Other => {
                "`openssl s_client -connect` to the target shows its side"
            }
        }
    }
}

/// A certificate's name as people write it: rustls gives `DnsName("bench.test")`.
fn plain(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inside.trim_matches('"')
}

/// What an error of a handshake means, and in words with its values.
pub fn explain(error: &io::Error) -> (Fault, String) {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        let ended = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        );
        return if ended { (Fault::Closed, Fault::Closed.words()) } else { (Fault::Other, error.to_string()) };
    };
    let fault = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Fault::NotYetValid,
            CertificateError::UnknownIssuer => Fault::UnknownIssuer,
            CertificateError::NotValidForName => Fault::WrongName,
            CertificateError::NotValidForNameContext { expected, presented } => {
                let expected = expected.to_str();
                return (
                    Fault::WrongName,
                    format!(
                        "the target's certificate is for {}, and not for {expected}",
                        if presented.is_empty() {
                            "nobody by name".to_owned()
                        } else {
                            presented.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ")
                        }
                    ),
                );
            }
            other if other.to_string().contains("CaUsedAsEndEntity") => {
                let words = "the target presents an authority's own certificate (CA:TRUE), which no server may";
                return (Fault::Certificate, words.into());
            }
            _ => return (Fault::Certificate, format!("the target's certificate is unfit: {certificate}")),
        },
        rustls::Error::InvalidMessage(_) => Fault::NotTls,
        rustls::Error::NoApplicationProtocol => Fault::NoProtocol,
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => Fault::NoProtocol,
        rustls::Error::AlertReceived(alert) => Fault::Refused(u8::from(*alert)),
        _ => return (Fault::Other, format!("TLS failed: {error}")),
    };
    (fault, fault.words())
}

/// The name to ask for: the one that is declared, else the host without its port.
///
/// # Errors
/// When it is neither a name nor an address.
pub fn server_name(tls: &Tls, host: &str) -> Result<ServerName<'static>, LoadError> {
    let bare = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = tls.name.as_deref().unwrap_or_else(|| bare.map_or(host, |(name, _)| name)).trim_matches(['[', ']']);
    ServerName::try_from(name.to_owned()).map_err(|_| {
        LoadError::job(format!("`{name}` can't be the name of a certificate"), "write a host name or an address")
    })
}

/// The settings of all connections to a target that speak one of these protocols.
///
/// # Errors
/// When a declared certificate can't be read, or the system trusts none.
pub fn config(tls: &Tls, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, LoadError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| LoadError::job(format!("TLS can't be set up: {error}"), "report this"))?;
    let mut config = if tls.unchecked {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(tls)?).with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

fn roots(tls: &Tls) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(ca) => {
            for certificate in CertificateDer::pem_slice_iter(ca.text.as_bytes()) {
                let added = certificate
                    .map_err(|error| error.to_string())
                    .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
                added.map_err(|error| {
                    LoadError::job(format!("a certificate of `{}` can't be read: {error}", ca.path), "give it in PEM")
                })?;
            }
            if roots.is_empty() {
                return Err(LoadError::job(format!("`{}` holds no certificate", ca.path), "give it in PEM"));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(LoadError::job(
                    "this system trusts no certificates",
                    "install them (`ca-certificates`), or name the one to trust (`tls ca=`)",
                ));
            }
        }
    }
    Ok(roots)
}

/// Takes any certificate, and still checks that whoever presents it has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Version and cipher suite as they were agreed, for people.
pub fn agreed(connection: &rustls::ClientConnection) -> String {
    let version = match connection.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
        _ => "TLS",
    };
    match connection.negotiated_cipher_suite() {
        Some(suite) => format!("{version}, {:?}", suite.suite()),
        None => version.to_owned(),
    }
}
