//! Real servers from the machine's packages, with certificates made by openssl: nginx as a target, tinyproxy as a proxy.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A directory that goes with its owner.
pub struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("exp-load-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A server process that ends with its owner.
struct Process(Child);

impl Process {
    /// Starts a command and waits until it listens.
    fn start(command: &mut Command, ports: &[u16]) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut process = Self(
            command
                .stdin(Stdio::null())
                .spawn()
                .unwrap_or_else(|error| panic!("{name} can't be started ({error}); tests/run.sh installs it")),
        );
        let began = Instant::now();
        for port in ports {
            while TcpStream::connect(("127.0.0.1", *port)).is_err() {
                assert!(began.elapsed() < Duration::from_secs(20), "{name} does not listen on {port}");
                let exit = process.0.try_wait().expect("its state");
                assert!(exit.is_none(), "{name} ended: {exit:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Ports that are free now.
fn ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

/// An authority and certificates that it signed.
pub struct Certificates {
    place: Place,
}

impl Certificates {
    /// Makes an authority with a certificate for bench.test and 127.0.0.1, one for other.test, and one that has expired.
    pub fn new(name: &str) -> Self {
        let made = Self { place: Place::new(name) };
        let config = "[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem\n\
             private_key=ca.key\ndefault_md=sha256\npolicy=any\nunique_subject=no\ncopy_extensions=copy\n[any]\ncommonName=supplied\n";
        fs::write(made.path("ca.cnf"), config).expect("written");
        fs::write(made.path("index.txt"), "").expect("written");
        fs::write(made.path("serial"), "01").expect("written");
        made.key_and("ca", &["-x509", "-days", "3650", "-subj", "/CN=An authority for tests"], "ca.pem");
        let (from, until) = ("20200101000000Z", "20400101000000Z");
        made.sign("good", "DNS:bench.test,IP:127.0.0.1", from, until);
        made.sign("other", "DNS:other.test", from, until);
        made.sign("expired", "DNS:bench.test,IP:127.0.0.1", from, "20200201000000Z");
        made
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.0.join(name)
    }

    /// The authority's certificate in PEM.
    pub fn ca(&self) -> String {
        fs::read_to_string(self.path("ca.pem")).expect("the authority's certificate")
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(&self.place.0).output();
        let output = output.expect("openssl runs; tests/run.sh installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn key_and(&self, name: &str, arguments: &[&str], out: &str) {
        let key = format!("{name}.key");
        let all = [
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            &key,
            "-out",
            out,
        ];
        self.openssl(&[&all[..], arguments].concat());
    }

    fn sign(&self, name: &str, names: &str, from: &str, until: &str) {
        let (request, certificate) = (format!("{name}.csr"), format!("{name}.pem"));
        let extension = format!("subjectAltName={names}");
        self.key_and(name, &["-subj", &format!("/CN={name}"), "-addext", &extension], &request);
        self.openssl(&[
            "ca",
            "-batch",
            "-config",
            "ca.cnf",
            "-in",
            &request,
            "-out",
            &certificate,
            "-notext",
            "-startdate",
            from,
            "-enddate",
            until,
        ]);
    }
}

/// nginx with one server for each way to be spoken to.
pub struct Nginx {
    _process: Process,
    /// HTTP/1.1 in the clear.
    pub plain: SocketAddr,
    /// HTTP/2 in the clear.
    pub clear2: SocketAddr,
    /// TLS with HTTP/1.1 and HTTP/2.
    pub secure: SocketAddr,
    /// TLS with HTTP/1.1 alone.
    pub secure1: SocketAddr,
    /// TLS with an expired certificate.
    pub expired: SocketAddr,
    /// TLS with a certificate for another name.
    pub other: SocketAddr,
    /// TLS and HTTP/2, and HTTP/2 in the clear, that end each connection after 50 requests.
    pub short: SocketAddr,
    /// A proxy of requests in absolute form.
    pub forward: SocketAddr,
    /// TLS that allows four requests at a time.
    pub narrow: SocketAddr,
    _place: Place,
}

impl Nginx {
    pub fn start(name: &str, certificates: &Certificates) -> Self {
        let place = Place::new(name);
        let [plain, clear2, secure, secure1, expired, other, short, narrow, forward] = ports::<9>();
        let mut servers = String::new();
        let mut server = |port: u16, how: &str, certificate: Option<&str>, more: &str| {
            let secured = certificate.map_or(String::new(), |name| {
                let path = |end: &str| certificates.path(&format!("{name}.{end}")).display().to_string();
                format!("ssl_certificate {}; ssl_certificate_key {};", path("pem"), path("key"))
            });
            writeln!(
                servers,
                "server {{ listen 127.0.0.1:{port} {how}; {secured} {more}\n\
                 location ~ ^/events/(?<id>[0-9]+)$ {{ default_type application/json; return 200 '{{\"id\":$id}}'; }}\n\
                 location /big {{ alias {}/; }}\n\
                 location / {{ default_type text/plain; return 200 ok; }} }}",
                place.0.display()
            )
            .expect("text");
        };
        server(plain, "", None, "");
        server(clear2, "http2", None, "");
        server(secure, "ssl http2", Some("good"), "");
        server(secure1, "ssl", Some("good"), "");
        server(expired, "ssl", Some("expired"), "");
        server(other, "ssl", Some("other"), "");
        server(short, "ssl http2", Some("good"), "keepalive_requests 50;");
        server(narrow, "ssl http2", Some("good"), "http2_max_concurrent_streams 4;");
        fs::write(place.0.join("blob"), vec![b'x'; 1_200_000]).expect("written");
        let config = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; ssl_protocols TLSv1.2 TLSv1.3; keepalive_requests 1000000; client_body_temp_path {0}; proxy_temp_path {0};\n\
             fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};\n{servers}\n\
             server {{ listen 127.0.0.1:{forward}; location / {{ proxy_pass http://$http_host$request_uri; }} }} }}",
            place.0.display()
        );
        fs::write(place.0.join("nginx.conf"), config).expect("written");
        let mut command = Command::new(if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" });
        command.arg("-p").arg(&place.0).arg("-c").arg(place.0.join("nginx.conf")).stderr(Stdio::null());
        let process =
            Process::start(&mut command, &[plain, clear2, secure, secure1, expired, other, short, narrow, forward]);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            _process: process,
            plain: at(plain),
            clear2: at(clear2),
            secure: at(secure),
            secure1: at(secure1),
            expired: at(expired),
            other: at(other),
            short: at(short),
            narrow: at(narrow),
            forward: at(forward),
            _place: place,
        }
    }
}

/// tinyproxy.
pub struct Proxy {
    _process: Process,
    pub address: SocketAddr,
    _place: Place,
}

impl Proxy {
    /// A proxy that allows CONNECT to every port, or to this one alone.
    pub fn start(name: &str, only: Option<u16>) -> Self {
        let place = Place::new(name);
        let [port] = ports::<1>();
        let allowed = only.map_or(String::new(), |port| format!("ConnectPort {port}\n"));
        let config = format!(
            "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 200\nLogLevel Critical\n{allowed}"
        );
        fs::write(place.0.join("tinyproxy.conf"), config).expect("written");
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(place.0.join("tinyproxy.conf")).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::start(&mut command, &[port]);
        Self { _process: process, address: SocketAddr::from(([127, 0, 0, 1], port)), _place: place }
    }
}
