//! What the tools are measured against: the no-op server, nginx, and a server that notes when each request arrives.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::noop;
use load::sys::{self, Epoll, Event, Interest};
use plan::CpuSet;

use crate::{SERVER_CPU, which};

/// A server on its CPU. It ends when it is dropped.
pub struct Server {
    pub name: &'static str,
    pub address: SocketAddr,
    _noop: Option<noop::Server>,
    nginx: Option<(Child, PathBuf)>,
}

impl Server {
    pub fn noop() -> Self {
        let options = noop::Options { cpus: CpuSet::new([SERVER_CPU]), ..noop::Options::default() };
        let server = noop::Server::start(&options).expect("the no-op server");
        Self { name: "no-op server", address: server.address(), _noop: Some(server), nginx: None }
    }

    /// `None` where nginx is not installed.
    pub fn nginx() -> Option<Self> {
        let nginx = which("nginx")?;
        let folder = std::env::temp_dir().join(format!("exp-rivals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // A free port, let go again: nginx can't be asked which one it took.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, configuration_text(&folder, port)).expect("a configuration");
        let child = Command::new("taskset")
            .args(["-c", &SERVER_CPU.to_string()])
            .arg(nginx)
            .arg("-c")
            .arg(&configuration)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server = Self { name: "nginx", address, _noop: None, nginx: Some((child, folder)) };
        let deadline = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen on {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }
}

fn configuration_text(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; worker_rlimit_nofile 60000;\n\
         events {{ worker_connections 50000; }}\n\
         http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 127.0.0.1:{port} backlog=8192; location / {{ default_type application/json; return 200 '{}'; }} }} }}\n",
        noop::BODY
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((child, folder)) = &mut self.nginx {
            // Without a master process the child is the whole of it.
            drop(child.kill());
            drop(child.wait());
            drop(std::fs::remove_dir_all(folder));
        }
    }
}

/// A server that never sleeps and notes the instant of each request: what it sees of a schedule is the sender's, not its own wake-up.
pub struct Witness {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<u64>>>,
}

impl Witness {
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            sys::pin_to_cpu(SERVER_CPU)?;
            watch(&listener, &told)
        });
        Ok(Self { address, stop, thread })
    }

    /// Ends it, and gives the arrivals in order, CLOCK_MONOTONIC ns.
    pub fn arrivals(self) -> io::Result<Vec<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the server ended in a panic"))?
    }
}

fn watch(listener: &TcpListener, stop: &AtomicBool) -> io::Result<Vec<u64>> {
    const LISTENER: u64 = u64::MAX;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_fd(), LISTENER, Interest::Read)?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        noop::BODY.len(),
        noop::BODY
    );
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut arrivals = Vec::with_capacity(1_000_000);
    let (mut events, mut buffer) = ([Event::NONE; 64], [0; 4_096]);
    while !stop.load(Ordering::Relaxed) {
        let count = epoll.wait(&mut events, 0)?;
        for event in &events[..count] {
            if event.token() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    epoll.add(stream.as_fd(), connections.len() as u64, Interest::Read)?;
                    connections.push(stream);
                }
                continue;
            }
            let stream = &mut connections[event.token() as usize];
            // The requests are smaller than the buffer and one at a time on each connection: a read brings one whole, or the end.
            if stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                arrivals.push(sys::now_ns());
                stream.write_all(answer.as_bytes())?;
            }
        }
    }
    Ok(arrivals)
}
