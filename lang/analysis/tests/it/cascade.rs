//! One mistake, one error: each word of a study is misspelt in turn, and what is told must be about that word. Where a
//! name is misspelt in its definition, each place that uses the right name may say that it does not exist.

use analysis::{Options, analyse};
use syntax::{Severity, SourceId, TokenKind, tokens};

use crate::common::{BASE, host, line, memory};

const EXTRA: &str = r##"factor pool 8 16 32
credentials jwt issuer="https://i.test" audience="a" { token reader scope="r"; token expired scope="r" expires="-1h" }
database events engine=postgres {
    image "postgres:17"
    memory "1GiB"
    set shared_buffers="1GB" max_connections=200
    template { sql "sql/schema.sql"; holds table=events rows=0 }
    each cell { clone; prewarm events; checkpoint settled=writeback }
}
contract { case "no token" { GET "/"; expect 401 { header WWW-Authenticate contains="x" } } }
workload writes {
    stream write bearer=reader {
        vary id uniform from=1 to=9
        POST "/${id}"
        json #"{"a":1}"#
        expect 201 { json "$.id" type=integer }
        creates row in=events
    }
}
candidate second {
    process "./server" in="candidates/app" { build "make"; needs make }
    listen 8081
    memory "1GiB"
    env POOL="${pool}" KEY="${jwt.public-key}" URL="${database.url}"
    ready GET="/" within="5s"
}
phase pools like=saturation {
    over candidate cores pool
    load workload=writes
    choose pool maximising=throughput for-each="candidate cores"
}
define phase longer like=saturation {
    parameter seconds type=duration default="30s" max="60s"
    parameter times type=count min=3
    load { for "${seconds}" }
    repeat "${times}"
}
phase long like=longer times=6 seconds="40s" {
    over candidate cores
    with pool from=pools
    load workload=writes
    gate generator-probe of=ceiling.throughput
}
phase grid like=rate-grid {
    over candidate cores rate
    with pool from=pools
    factor rate of=ceiling.throughput "60%" "80%" "95%"
    load workload=writes
    carried "achieved >= 99%" "corrected.p99 < 10ms"
}
agreement loops { between ceiling.throughput grid.carried within="15%"; otherwise void }
"##;

fn study() -> String {
    let base = BASE
        .replace("over candidate cores;", "over candidate cores; with pool from=pools; load workload=mixed;")
        .replace("over candidate cores }", "over candidate cores; with pool from=pools; load workload=mixed }");
    format!("{base}{EXTRA}")
}

fn errors(text: &str) -> Vec<(syntax::Span, String)> {
    let sources = memory(text);
    let options = Options { host: Some(host()), ..Options::default() };
    let analysed = analyse(&sources, &SourceId::new("study.kdl"), &options);
    analysed
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| (diagnostic.primary.at.span, line(diagnostic, &sources)))
        .collect()
}

#[test]
fn one_misspelt_word_is_one_error() {
    let text = study();
    let whole = errors(&text);
    assert!(whole.is_empty(), "{whole:#?}");
    let mut wrong = Vec::new();
    let mut tried = 0;
    for token in tokens(&text).iter().filter(|token| token.kind == TokenKind::Bare) {
        let word = token.span.of(&text);
        let mut misspelt = text.clone();
        misspelt.insert_str(token.span.end as usize, "zq");
        tried += 1;
        let found = errors(&misspelt);
        // Names in definitions are missed where they are used; those errors name the word itself.
        let about = |(span, message): &(syntax::Span, String)| {
            span.start <= token.span.end + 2 && token.span.start <= span.end
                || message.contains(&format!("`{word}`"))
                || message.contains(&format!("${{{word}}}"))
                || message.contains(&format!("{word}."))
                || message.contains(&format!("{word}zq"))
        };
        let others: Vec<&str> = found.iter().filter(|error| !about(error)).map(|(_, line)| line.as_str()).collect();
        if !others.is_empty() {
            let at = text[..token.span.start as usize].lines().count();
            wrong.push(format!("`{word}` in line {at}:\n  {}", others.join("\n  ")));
        }
    }
    assert!(tried > 150, "{tried} words were tried");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
