//! The options of `exp load`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::RunFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsChoice {
    /// Evenly spaced.
    Constant,
    /// A Poisson process of the same mean rate.
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// Each send is a system call of its own, made at its stamp.
    Epoll,
    /// io_uring: fewer system calls, and a request leaves up to 64 sends after its stamp. A closed loop of plain HTTP/1.1 only.
    Uring,
}

#[derive(Debug, Args)]
pub struct Load {
    /// The URL, such as http://127.0.0.1:8080/.
    #[arg(required_unless_present = "control")]
    pub url: Option<String>,
    /// Takes its orders on standard input, one JSON object a line, and answers on standard output.
    #[arg(long, conflicts_with = "url")]
    pub control: bool,

    /// Connections.
    #[arg(short = 'c', long, default_value_t = 64, help_heading = "How much")]
    pub connections: u32,
    /// Requests per second on a fixed schedule; without it, a closed loop.
    #[arg(short = 'r', long, value_name = "PER_SECOND", help_heading = "How much")]
    pub rate: Option<f64>,
    /// Leg of a rate that changes, in the order given: `RATE:FOR` keeps a rate, `FROM:TO:OVER` ramps. They are the window together.
    #[arg(
        long = "step",
        visible_alias = "ramp",
        value_name = "RATE:FOR or FROM:TO:OVER",
        conflicts_with_all = ["rate", "duration", "requests"],
        help_heading = "How much"
    )]
    pub steps: Vec<String>,
    /// Length of the window, such as 30s; 10s where neither this nor -n is given.
    #[arg(short = 'z', long = "for", alias = "duration", value_name = "DURATION", help_heading = "How much")]
    pub duration: Option<String>,
    /// Ends after this many requests. The window is then the longest that they may take (an hour where it is not given).
    #[arg(short = 'n', long, value_name = "COUNT", help_heading = "How much")]
    pub requests: Option<u64>,
    /// Load before the window.
    #[arg(long, value_name = "DURATION", default_value = "0s", help_heading = "How much")]
    pub warm_up: String,
    /// An answer that takes longer has timed out.
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = "How much")]
    pub timeout: String,
    /// How the slots of a rate are spread.
    #[arg(long, value_enum, default_value_t = ArrivalsChoice::Constant, help_heading = "How much")]
    pub arrivals: ArrivalsChoice,
    /// Seed of random arrivals.
    #[arg(long, default_value_t = 1, help_heading = "How much")]
    pub seed: u64,

    /// Method.
    #[arg(short = 'm', long, default_value = "GET", help_heading = "What is sent")]
    pub method: String,
    /// A header, such as `Accept: text/plain`; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "What is sent")]
    pub headers: Vec<String>,
    /// The body.
    #[arg(short = 'd', long, value_name = "TEXT", conflicts_with = "body_file", help_heading = "What is sent")]
    pub body: Option<String>,
    /// A file with the body, of any bytes.
    #[arg(short = 'D', long, value_name = "FILE", help_heading = "What is sent")]
    pub body_file: Option<PathBuf>,
    /// The body's type; application/json where the body looks like JSON.
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "What is sent")]
    pub content_type: Option<String>,
    /// Asks for gzip, and unpacks bodies before they are checked.
    #[arg(long, help_heading = "What is sent")]
    pub compressed: bool,
    /// A bearer token.
    #[arg(long, value_name = "TOKEN", help_heading = "What is sent")]
    pub bearer: Option<String>,
    /// Value of the Host header, where it is not the URL's.
    #[arg(long, value_name = "NAME", help_heading = "What is sent")]
    pub host: Option<String>,

    /// Status that is expected; anything else is a failure. May be repeated; without it, 200 to 299.
    #[arg(long, value_name = "CODE", help_heading = "What must come back")]
    pub expect: Vec<u16>,
    /// A text that every body must contain.
    #[arg(long, value_name = "TEXT", help_heading = "What must come back")]
    pub expect_body: Option<String>,
    /// Share of requests that may fail before this command does.
    #[arg(long, value_name = "PERCENT", default_value = "0%", help_heading = "What must come back")]
    pub allow_failures: String,
    /// Does not fail where the generator was the bottleneck; it says so all the same.
    #[arg(long, help_heading = "What must come back")]
    pub allow_bottleneck: bool,

    /// Address and port that connections go to, whatever the URL's host is.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "How it travels")]
    pub connect_to: Option<String>,
    /// Each request on a connection of its own.
    #[arg(long, help_heading = "How it travels")]
    pub disable_keepalive: bool,
    /// HTTP/2: by prior knowledge for http, by ALPN for https.
    #[arg(long, help_heading = "How it travels")]
    pub http2: bool,
    /// Requests in flight at one time on each connection, with HTTP/2.
    #[arg(
        short = 'p',
        long,
        value_name = "COUNT",
        default_value_t = 1,
        requires = "http2",
        help_heading = "How it travels"
    )]
    pub streams: u32,
    /// Certificates (PEM) that are trusted, in place of the system's.
    #[arg(long, value_name = "FILE", help_heading = "How it travels")]
    pub cacert: Option<PathBuf>,
    /// Takes any certificate.
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = "How it travels")]
    pub insecure: bool,
    /// An HTTP proxy, such as 127.0.0.1:3128.
    #[arg(short = 'x', long, value_name = "ADDRESS:PORT", help_heading = "How it travels")]
    pub proxy: Option<String>,
    /// A host that is yours to load though it is not this machine, as the URL names it.
    #[arg(long, value_name = "NAME", help_heading = "How it travels")]
    pub allow_host: Option<String>,

    /// Threads of each generator; as many as it has CPUs where they are given.
    #[arg(short = 't', long, help_heading = "What generates")]
    pub threads: Option<u32>,
    /// What hands the requests to the kernel.
    #[arg(long, value_enum, default_value_t = EngineChoice::Epoll, help_heading = "What generates")]
    pub engine: EngineChoice,
    /// CPUs that the threads are pinned to, such as 1 or 2-3; several generators share them out.
    #[arg(long, value_name = "CPUS", help_heading = "What generates")]
    pub cpus: Option<String>,
    /// Generators that send the load together, each in each place.
    #[arg(short = 'g', long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "What generates")]
    pub generators: u32,
    /// Where generators run: `process`, `container`, or a Docker Engine such as tcp://10.0.0.7:2375, which may be followed by
    /// `,target=ADDRESS` (this machine as that host reaches it) and `,cpus=CPUS`. May be repeated.
    #[arg(long, value_name = "PLACE", help_heading = "What generates")]
    pub on: Vec<String>,

    /// Have the kernel note when answers arrive on every connection, not on one of 16: how long they wait to be read.
    #[arg(long, help_heading = "What is told")]
    pub kernel_time: bool,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = RunFormat::Human, help_heading = "What is told")]
    pub format: RunFormat,
    /// Writes the latencies of each interval as an HdrHistogram log, one tag for each kind.
    #[arg(long, value_name = "FILE", help_heading = "What is told")]
    pub hdr: Option<PathBuf>,
    /// Length of an interval of that log.
    #[arg(long, value_name = "DURATION", default_value = "1s", help_heading = "What is told")]
    pub interval: String,
    /// No live view on a terminal.
    #[arg(short = 'q', long, help_heading = "What is told")]
    pub quiet: bool,
}
