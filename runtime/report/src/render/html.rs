//! The report as one self-contained HTML file: no script, no font, no picture from elsewhere.
//!
//! It is the Markdown report with drawings for charts, and with links from every figure to its derivation and from there
//! to the repetitions that it is made of.

use pulldown_cmark::{Options, Parser};

use super::markdown::{Form, document};
use crate::model::Report;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1e21;--faint:#5f6670;--line:#d5d9de;--paper:#fff;--bar:#4a78b5;--good:#1f7a3d;--bad:#b3261e}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--faint:#9aa2ab;--line:#3a4047;--paper:#16181b;--bar:#7fa8dd;--good:#6cc58a;--bad:#f2877f}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:70rem;margin:2rem auto;padding:0 1rem}\
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}\
table{border-collapse:collapse;display:block;overflow-x:auto;font-variant-numeric:tabular-nums}\
th,td{border-bottom:1px solid var(--line);padding:.3rem .8rem;text-align:left;vertical-align:top}\
th{color:var(--faint);font-weight:600}\
code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.8rem;border:1px solid var(--line);border-radius:4px}\
a{color:inherit;text-decoration-color:var(--line);text-underline-offset:3px}:target{background:color-mix(in srgb,var(--bar) 25%,transparent)}\
svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .faint{fill:var(--faint)}\
svg .bar{fill:var(--bar);opacity:.35}svg .valid{fill:var(--good)}svg .void{stroke:var(--bad);stroke-width:2;fill:none}\
@media print{a{text-decoration:none}table{display:table}}";

/// The whole report.
pub fn html(report: &Report) -> String {
    let markdown = document(report, Form::Page);
    let mut body = String::new();
    pulldown_cmark::html::push_html(&mut body, Parser::new_ext(&markdown, Options::ENABLE_TABLES));
    let title = if report.study.title.is_empty() { &report.study.name } else { &report.study.title };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// Text inside an element or an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
