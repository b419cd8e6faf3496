//! From the command line to what is sent, and by whom.

use std::net::SocketAddr;

use load::alone::Options;
use load::wire::{Arrivals, Engine, Transport};
use plan::{Body, BodyFile, Certificates, ContentHash, CpuSet, GeneratorOn, GeneratorPlace, Leg, Protocol, Text, Tls};

use crate::args::{ArrivalsChoice, EngineChoice, Load};

/// Everything that the command line asks for.
pub struct Asked {
    /// The load.
    pub options: Options,
    /// Where generators run; empty: in this process.
    pub places: Vec<GeneratorPlace>,
    /// Length of an interval of the HDR log, ns.
    pub interval_ns: u64,
    /// Share of requests that may fail, 0–1.
    pub allow_failures: f64,
}

/// The window, where nothing is said.
const WINDOW_NS: u64 = 10_000_000_000;
/// Longest window of a number of requests, where none is given.
const HOUR_NS: u64 = 3_600_000_000_000;

/// Reads the options.
///
/// # Errors
/// A sentence that names the option, its value and how to write it.
pub fn read(arguments: &Load) -> Result<Asked, String> {
    let mut headers = Vec::new();
    for header in &arguments.headers {
        let (name, value) =
            header.split_once(':').ok_or_else(|| format!("`{header}` is no header; write `Name: value`"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    headers.extend(arguments.content_type.iter().map(|kind| ("Content-Type".to_owned(), kind.clone())));
    let cpus = arguments.cpus.as_deref().map(cpu_set).transpose()?.unwrap_or_default();
    if let Some(rate) = arguments.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
        return Err(format!("the rate is {rate}; give a number above 0"));
    }
    if arguments.requests == Some(0) {
        return Err("no requests were asked for; give -n a number above 0".to_owned());
    }
    let warm_up_ns = duration(&arguments.warm_up)?;
    if arguments.requests.is_some() && arguments.rate.is_none() && warm_up_ns > 0 {
        return Err(
            "a closed loop of a number of requests has no warm-up; give --for, or --rate, or no --warm-up".to_owned()
        );
    }
    let window_ns = match (&arguments.duration, arguments.requests) {
        (Some(text), _) => duration(text)?,
        (None, Some(_)) => HOUR_NS,
        (None, None) => WINDOW_NS,
    };
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(body), _) => Some(Body::Text(Text::literal(body))),
        (None, Some(path)) => {
            let content = std::fs::read(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
            let digest = ContentHash::of_bytes(&content);
            Some(Body::File(BodyFile { path: path.display().to_string(), digest, content }))
        }
        (None, None) => None,
    };
    let interval_ns = duration(&arguments.interval)?;
    if interval_ns < 10_000_000 {
        return Err(format!("an interval of {} is too short; give 10ms or more", arguments.interval));
    }
    let places = places(arguments, &cpus)?;
    Ok(Asked {
        options: Options {
            url: arguments.url.clone().unwrap_or_default(),
            method: arguments.method.to_uppercase(),
            headers,
            host: arguments.host.clone(),
            connect_to: arguments.connect_to.as_deref().map(|text| address(text, "--connect-to")).transpose()?,
            bearer: arguments.bearer.clone(),
            body,
            expect: arguments.expect.clone(),
            expect_body: arguments.expect_body.clone(),
            without_keep_alive: arguments.disable_keepalive,
            compressed: arguments.compressed,
            transport: transport(arguments)?,
            engine: match arguments.engine {
                EngineChoice::Epoll => Engine::Epoll,
                EngineChoice::Uring => Engine::Uring,
            },
            connections: arguments.connections,
            rate: arguments.rate,
            course: arguments.steps.iter().map(|text| leg(text)).collect::<Result<_, _>>()?,
            arrivals: match arguments.arrivals {
                ArrivalsChoice::Constant => Arrivals::Constant,
                ArrivalsChoice::Poisson => Arrivals::Poisson,
            },
            requests: arguments.requests,
            warm_up_ns,
            window_ns,
            timeout_ns: duration(&arguments.timeout)?,
            threads: arguments.threads.unwrap_or_else(|| u32::try_from(cpus.len()).unwrap_or(1).max(1)),
            cpus,
            seed: arguments.seed,
            kernel_time: arguments.kernel_time,
            allow_host: arguments.allow_host.clone(),
        },
        places,
        interval_ns,
        allow_failures: share(&arguments.allow_failures)?,
    })
}

fn transport(arguments: &Load) -> Result<Transport, String> {
    let ca = match &arguments.cacert {
        None => None,
        Some(path) => Some(Certificates {
            path: path.display().to_string(),
            text: std::fs::read_to_string(path)
                .map_err(|error| format!("{} can't be read: {error}", path.display()))?,
        }),
    };
    let chosen = ca.is_some() || arguments.insecure;
    Ok(Transport {
        protocol: if arguments.http2 { Protocol::Http2 } else { Protocol::Http1 },
        in_flight: arguments.streams,
        tls: chosen.then_some(Tls { ca, name: None, unchecked: arguments.insecure }),
        proxy: arguments.proxy.as_deref().map(|text| address(text, "--proxy")).transpose()?,
    })
}

/// Where generators run: each place as often as generators were asked for, the CPUs of the command line shared out over those
/// that name none.
fn places(arguments: &Load, cpus: &CpuSet) -> Result<Vec<GeneratorPlace>, String> {
    if arguments.generators == 1 && arguments.on.is_empty() {
        return Ok(Vec::new());
    }
    let named = if arguments.on.is_empty() { &["process".to_owned()][..] } else { &arguments.on };
    let mut places = Vec::new();
    for text in named {
        let place = place(text)?;
        places.extend(std::iter::repeat_n(place, arguments.generators as usize));
    }
    let open = places.iter().filter(|place| place.cpus.is_empty()).count();
    if !cpus.is_empty() && open > 0 {
        if cpus.len() < open {
            return Err(format!(
                "{open} generators share the CPUs {cpus}: give --cpus at least {open}, or none to pin nothing"
            ));
        }
        let all = cpus.cpus();
        for (index, place) in places.iter_mut().filter(|place| place.cpus.is_empty()).enumerate() {
            let (from, to) = (index * all.len() / open, (index + 1) * all.len() / open);
            place.cpus = CpuSet::new(all[from..to].iter().copied());
        }
    }
    Ok(places)
}

fn place(text: &str) -> Result<GeneratorPlace, String> {
    // A CPU set holds commas itself, so it is the last.
    let (rest, cpus) = match text.split_once(",cpus=") {
        Some((rest, cpus)) => (rest, cpu_set(cpus)?),
        None => (text, CpuSet::default()),
    };
    let (name, target) = match rest.split_once(",target=") {
        Some((name, target)) => {
            let target =
                target.parse().map_err(|_| format!("`{target}` in `{text}` is no address; write target=10.0.0.2"))?;
            (name, Some(target))
        }
        None => (rest, None),
    };
    let on = match name {
        "process" => GeneratorOn::Process,
        "container" => GeneratorOn::Container,
        address if address.contains("://") => GeneratorOn::Engine { address: address.to_owned(), target },
        _ => {
            return Err(format!(
                "`{text}` is no place for a generator; write process, container, or a Docker Engine such as tcp://10.0.0.7:2375"
            ));
        }
    };
    if target.is_some() && !matches!(on, GeneratorOn::Engine { .. }) {
        return Err(format!("`{text}` names a target, which only a generator on another host needs"));
    }
    Ok(GeneratorPlace { on, cpus })
}

fn cpu_set(text: &str) -> Result<CpuSet, String> {
    text.parse().map_err(|error| format!("`{text}` is no CPU set: {error}"))
}

fn address(text: &str, option: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address with a port; write {option} 127.0.0.1:8080"))
}

/// A leg of a rate: `RATE:FOR` or `FROM:TO:OVER`, rates per second with or without `/s`.
fn leg(text: &str) -> Result<Leg, String> {
    let rate = |part: &str| {
        let rate = part.strip_suffix("/s").unwrap_or(part).parse::<f64>().ok();
        rate.filter(|rate| rate.is_finite() && *rate >= 0.0).ok_or_else(|| format!("`{part}` in `{text}` is no rate"))
    };
    let (from, to, over) = match *text.split(':').collect::<Vec<_>>() {
        [steady, over] => (rate(steady)?, rate(steady)?, over),
        [from, to, over] => (rate(from)?, rate(to)?, over),
        _ => return Err(format!("`{text}` is no leg; write --step 500:30s, or --ramp 0:1000:30s")),
    };
    Ok(Leg { from, to, for_ns: duration(over)? })
}

/// A share, 0–1, written as a percentage.
fn share(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .parse::<f64>()
        .ok()
        .filter(|percent| text.ends_with('%') && (0.0..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no share; write 0%, 0.1% or 5%"))
}

/// A duration as the language writes it, in nanoseconds.
fn duration(text: &str) -> Result<u64, String> {
    analysis::value::units::duration(text)
        .ok()
        .and_then(|ns| u64::try_from(ns).ok())
        .ok_or_else(|| format!("`{text}` is no duration; write 10s, 250ms or 1m30s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(text: &str) -> String {
        match place(text) {
            Ok(place) => format!("{} {}", place.on, place.cpus).trim().to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn places_are_read_or_refused_with_the_way_to_write_them() {
        for (text, expected) in [
            ("process", "process"),
            ("container,cpus=2-3,5", "container 2-3,5"),
            ("tcp://198.18.0.7:2375", "tcp://198.18.0.7:2375"),
            ("tcp://198.18.0.7:2375,target=198.18.0.2,cpus=0", "tcp://198.18.0.7:2375 0"),
            ("docker", "`docker` is no place for a generator"),
            ("process,target=198.18.0.2", "only a generator on another host"),
            ("tcp://h:1,target=name", "`name` in `tcp://h:1,target=name` is no address"),
            ("container,cpus=a", "`a` is no CPU set"),
        ] {
            assert!(on(text).starts_with(expected) || on(text).contains(expected), "{text}: {}", on(text));
        }
    }

    #[test]
    fn legs_are_steps_or_ramps() {
        assert_eq!(leg("500:30s"), Ok(Leg { from: 500.0, to: 500.0, for_ns: 30_000_000_000 }));
        assert_eq!(leg("0:1.5/s:250ms"), Ok(Leg { from: 0.0, to: 1.5, for_ns: 250_000_000 }));
        for (text, words) in [
            ("500", "write --step 500:30s"),
            ("1:2:3:4", "no leg"),
            ("-1:5s", "`-1` in `-1:5s` is no rate"),
            ("NaN:5s", "no rate"),
            ("5:5", "`5` is no duration"),
        ] {
            assert!(leg(text).is_err_and(|why| why.contains(words)), "{text}");
        }
    }

    #[test]
    fn shares_and_durations_need_their_units() {
        assert_eq!((share("0%"), share("2.5%")), (Ok(0.0), Ok(0.025)));
        for text in ["1", "-1%", "101%", "%", "NaN%"] {
            assert!(share(text).is_err_and(|why| why.contains(text)), "{text}");
        }
        assert!(duration("10").is_err_and(|why| why.contains("`10` is no duration")));
    }
}
