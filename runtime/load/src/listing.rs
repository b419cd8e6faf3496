//! The requests of a job written out, for tools that read them from a file.

use crate::error::LoadError;
use crate::parameter::Values;
use crate::program::Program;
use crate::wire::Job;

/// A request as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Method.
    pub method: String,
    /// Path and query, percent-encoded.
    pub path: String,
    /// Headers in order, without `Host` and the framing of the body.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
}

/// Most headers that a request may have.
const MOST_HEADERS: usize = 64;

/// The first `count` requests of the job's only stream, byte for byte what the generator would send; one where nothing varies.
///
/// # Errors
/// When the job contradicts itself, has several streams, or can't be sent.
pub fn list(job: &Job, count: usize) -> Result<Vec<Listed>, LoadError> {
    let program = Program::new(job)?;
    let [lane] = &program.lanes[..] else {
        return Err(LoadError::job(
            format!("the workload `{}` has {} streams", job.workload.name, program.lanes.len()),
            "give it one: only one can be written out",
        ));
    };
    let count = if lane.parameters.is_empty() { 1 } else { count };
    let (mut values, mut bytes) = (Values::default(), Vec::new());
    (0..count as u64)
        .map(|ordinal| {
            bytes.clear();
            lane.parameters.draw(ordinal, &mut values);
            lane.template.render(&values, &mut bytes);
            listed(&bytes).ok_or_else(|| {
                LoadError::job("a request can't be written out", "write its path and headers without odd characters")
            })
        })
        .collect()
}

fn listed(bytes: &[u8]) -> Option<Listed> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).ok()? else { return None };
    let framing = |name: &str| {
        ["host", "content-length", "transfer-encoding"].iter().any(|framing| name.eq_ignore_ascii_case(framing))
    };
    let body = &bytes[head..];
    Some(Listed {
        method: request.method?.to_owned(),
        path: request.path?.to_owned(),
        headers: request
            .headers
            .iter()
            .filter(|header| !framing(header.name))
            .map(|header| Some((header.name.to_owned(), std::str::from_utf8(header.value).ok()?.to_owned())))
            .collect::<Option<_>>()?,
        body: (!body.is_empty()).then(|| body.to_vec()),
    })
}
