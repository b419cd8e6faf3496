//! `unvalidated-response`: a stream whose answers could be anything.

use plan::workload::BodyCheck;
use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0701",
        "unvalidated-response",
        Severity::Warning,
        "A stream does not say what its answers must be: an error page counts as a request.",
    ),
    page: include_str!("../../../../docs/lints/unvalidated-response.md"),
    check,
};

/// Statuses whose answers have no body.
const BODILESS: [u16; 3] = [204, 205, 304];

fn check(look: &Look<'_>, findings: &mut Findings) {
    for workload in &look.plan.workloads {
        let Some(item) = look.study.find("workload", &workload.name).filter(|item| !item.broken) else { continue };
        for stream in &workload.streams {
            let Some(node) = item.keyed("stream", &stream.name) else { continue };
            let name = &stream.name;
            match node.child("expect") {
                None => {
                    findings
                        .add(
                            &node.name_at,
                            &[item, node],
                            format!("stream `{name}` accepts every 2xx answer, whatever it says"),
                        )
                        .help("say what an answer must be: `expect 200 { json \"$.id\" type=integer }`")
                        .severity(Severity::Error);
                }
                Some(expect) if stream.expect.body.is_empty() => {
                    let bodiless = stream.request.method == "HEAD"
                        || stream.expect.status.iter().all(|status| BODILESS.contains(status));
                    let checked = expect.child("json").is_some() || expect.child("body").is_some();
                    if !bodiless && !checked {
                        findings
                            .add(
                                &expect.name_at,
                                &[item, node],
                                format!("stream `{name}` checks the status of its answers and not what they say"),
                            )
                            .help("check the body too: `expect 200 { json \"$.id\" type=integer }`");
                    }
                }
                Some(expect) => {
                    let only_length = stream.expect.body.iter().all(|check| matches!(check, BodyCheck::Length(_)));
                    if only_length && !expect.broken {
                        findings
                            .add(&expect.name_at, &[item, node], format!("stream `{name}` checks only how long its answers are: another page of that length passes"))
                            .help("check what the body says, or its digest");
                    }
                }
            }
        }
    }
}
