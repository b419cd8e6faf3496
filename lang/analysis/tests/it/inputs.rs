//! Inputs are part of what is recorded and hashed; secrets are not, whatever the environment holds.

use std::collections::BTreeMap;

use crate::common::{around, host, memory};
use analysis::{Options, analyse};
use plan::{Input, Piece, Plan};
use syntax::SourceId;

const STUDY: &str = r#"input TAG default="1"
input SIZE
secret TOKEN
candidate app {
    label "app at ${env:TAG}"
    image "app:${env:TAG}"
    listen 8080
    env TOKEN="${env:TOKEN}" SIZE="${env:SIZE} of ${cores}"
    ready GET="/"
}
"#;

fn plan(environment: &[(&str, &str)]) -> Plan {
    let study = around(STUDY);
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = Options { host: Some(host()), environment, ..Options::default() };
    let analysed = analyse(&memory(&study), &SourceId::new("study.kdl"), &options);
    analysed.plan.unwrap_or_else(|| panic!("{:#?}", analysed.diagnostics))
}

#[test]
fn a_plan_holds_inputs_and_no_secret() {
    let bare = plan(&[]);
    let value = |name: &str, value: Option<&str>, is_default| Input {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        is_default,
    };
    assert_eq!(bare.inputs, [value("TAG", Some("1"), true), value("SIZE", None, true)]);
    assert_eq!(bare.secrets, ["TOKEN"]);
    assert_eq!(bare.candidates[0].label, "app at 1");

    let given = plan(&[("TAG", "2 x"), ("SIZE", "big"), ("TOKEN", "the-secret"), ("OTHER", "nobody's")]);
    assert_eq!(given.inputs, [value("TAG", Some("2 x"), false), value("SIZE", Some("big"), false)]);
    let env: BTreeMap<&str, &plan::Text> =
        given.candidates[0].env.iter().map(|(name, text)| (name.as_str(), text)).collect();
    assert_eq!(env["SIZE"].0, [Piece::Literal("big of ".into()), Piece::Variable("cores".into())]);
    assert_eq!(env["TOKEN"].0, [Piece::Variable("env:TOKEN".into())]);
    assert_eq!(given.report.reproduce, "TAG='2 x' SIZE=big TOKEN=… exp run study.kdl --machine bench");
    let json = serde_json::to_string(&given).expect("JSON");
    assert!(!json.contains("the-secret") && !json.contains("nobody"), "{json}");
}

#[test]
fn another_input_is_another_measurement_and_another_secret_is_not() {
    let hashes = |environment: &[(&str, &str)]| -> Vec<plan::ContentHash> {
        plan(environment).phases.iter().flat_map(|phase| &phase.cells).map(|cell| cell.hash.clone()).collect()
    };
    let one = hashes(&[("SIZE", "big")]);
    assert_eq!(one, hashes(&[("SIZE", "big"), ("TOKEN", "the-secret")]));
    assert_eq!(one, hashes(&[("SIZE", "big"), ("TAG", "1")]), "the default, given");
    assert_ne!(one, hashes(&[("SIZE", "small")]));
    assert_ne!(one, hashes(&[("SIZE", "big"), ("TAG", "2")]));
}
