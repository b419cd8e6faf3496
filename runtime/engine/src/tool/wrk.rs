//! wrk: closed loop. A script sends the requests and prints the account as `name value` lines, the whole latency histogram
//! included; wrk's own text is for people.

use std::fmt::Write as _;
use std::io;

use journal::Histogram;

use super::{Call, Told, seconds, write};

/// First line of the account; the number is that of its format.
const MARK: &str = "account 1";

/// Prints the account at the end. `#latency` and `latency(i)` give each value that occurred, in µs, and how often.
const DONE: &str = r#"
function done(summary, latency, requests)
  local errors = summary.errors
  io.write("account 1\n")
  io.write(string.format("measured-us %d\nrequests %d\n", summary.duration, summary.requests))
  io.write(string.format("connect %d\nread %d\nwrite %d\n", errors.connect, errors.read, errors.write))
  io.write(string.format("status %d\ntimeout %d\n", errors.status, errors.timeout))
  for i = 1, #latency do
    local value, count = latency(i)
    io.write(string.format("us %d %d\n", value, count))
  end
  io.write("end\n")
end
"#;

/// Each thread goes through the written-out requests from a place of its own.
const REQUESTS: &str = r#"
local threads = 0
function setup(thread)
  thread:set("place", threads * 1009)
  threads = threads + 1
end
local requests = {}
function init(args)
  for i, path in ipairs(paths) do requests[i] = wrk.format(wrk.method, path, wrk.headers, wrk.body) end
end
function request()
  place = place % #requests + 1
  return requests[place]
end
"#;

/// Writes the script and gives the arguments.
pub fn arguments(call: &Call<'_>) -> io::Result<Vec<String>> {
    let script = write(call.directory, "load.lua", script(call).as_bytes())?;
    let timeout = call.job.timeout_ns.div_ceil(1_000_000_000).max(1);
    let threads = call.job.threads.clamp(1, call.job.connections);
    let options = [
        ("-t", threads.to_string()),
        ("-c", call.job.connections.to_string()),
        ("-d", format!("{}s", seconds(call.length))),
        ("--timeout", format!("{timeout}s")),
        ("-s", script),
    ];
    let mut words: Vec<String> = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
    let path = call.requests.first().map_or("/", |request| request.path.as_str());
    words.push(format!("{}{path}", call.url));
    Ok(words)
}

fn script(call: &Call<'_>) -> String {
    let mut script = String::new();
    let Some(request) = call.requests.first() else { return script };
    // Writing to a String can't fail.
    let _ = writeln!(script, "wrk.method = {}", quoted(request.method.as_bytes()));
    for (name, value) in &request.headers {
        let _ = writeln!(script, "wrk.headers[{}] = {}", quoted(name.as_bytes()), quoted(value.as_bytes()));
    }
    if let Some(body) = &request.body {
        let _ = writeln!(script, "wrk.body = {}", quoted(body));
    }
    if call.requests.len() > 1 {
        script.push_str("local paths = {\n");
        for request in call.requests {
            let _ = writeln!(script, "{},", quoted(request.path.as_bytes()));
        }
        script.push_str("}\n");
        script.push_str(REQUESTS);
    }
    script.push_str(DONE);
    script
}

/// A Lua string of any bytes.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\') => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03}");
            }
        }
    }
    text.push('"');
    text
}

/// Reads the account of a load over so many connections.
///
/// # Errors
/// What it lacks, or what in it is no measurement.
pub fn read(text: &str, connections: u32) -> Result<Told, String> {
    let mut lines = text.lines().skip_while(|line| *line != MARK).skip(1);
    let mut number = |name: &str| {
        let line = lines.next().ok_or_else(|| format!("its account ends before `{name}`"))?;
        let value = line.strip_prefix(name).and_then(|rest| rest.trim().parse::<u64>().ok());
        value.ok_or_else(|| format!("`{line}` stands where `{name}` and a number should"))
    };
    let mut told = Told { measured_ns: number("measured-us")?.saturating_mul(1_000), ..Told::default() };
    let requests = number("requests")?;
    for (name, reason) in [
        ("connect", "connection refused or lost while connecting"),
        ("read", "connection lost while reading"),
        ("write", "connection lost while sending"),
    ] {
        let count = number(name)?;
        if count > 0 {
            told.failures.insert(reason.to_owned(), count);
        }
    }
    let status = number("status")?;
    told.fine =
        requests.checked_sub(status).ok_or_else(|| format!("it tells {status} bad statuses of {requests} answers"))?;
    if status > 0 {
        told.failures.insert("status of 400 or above".to_owned(), status);
    }
    told.timed_out = number("timeout")?;
    let mut values = Vec::new();
    loop {
        let line = lines.next().ok_or("its account has no end: it was cut off")?;
        if line == "end" {
            break;
        }
        let mut words = line.strip_prefix("us ").unwrap_or_default().split(' ').map(str::parse::<u64>);
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(us)), Some(Ok(count)), None) => values.push((us.saturating_mul(1_000), count)),
            _ => return Err(format!("`{line}` stands where a latency and its count should")),
        }
    }
    if told.measured_ns == 0 {
        return Err("it measured for no time".to_owned());
    }
    told.service = Histogram::counted(values);
    // What is under way when wrk ends is cut off.
    told.unknown = u64::from(connections);
    Ok(told)
}
