//! The schema holds together: its page is current, its examples read, its defaults have their types, its sets are the
//! plan's.
#![expect(clippy::disallowed_methods, reason = "the page lies on the disk")]

use std::sync::Arc;

use crate::common::{around, host, memory, repository};
use analysis::schema::document::{language, names};
use analysis::schema::{FILE, GATE, NodeSpec, Setting, Type, every_node};
use analysis::value::units;
use analysis::{Options, analyse};
use syntax::SourceId;

#[test]
fn the_page_is_current() {
    let path = repository().join("docs/language.md");
    let fresh = language();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &fresh).expect("the page can be written");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == fresh, "docs/language.md is not current: UPDATE=1 cargo test -p analysis writes it anew");
    for name in names() {
        assert!(fresh.contains(&format!("`{name}")) || fresh.contains(&format!(" {name}`")), "`{name}` is on the page");
    }
}

fn settings(spec: &'static NodeSpec) -> impl Iterator<Item = &'static Setting> {
    spec.settings.iter().chain(spec.variants.iter().flat_map(|variant| variant.settings))
}

#[test]
fn everything_is_described() {
    for spec in every_node() {
        assert!(!spec.doc.is_empty() && spec.doc.ends_with('.'), "{} has a sentence", spec.name);
        assert!(spec.name == FILE.name || spec.example.contains(spec.name), "{} has an example with it", spec.name);
        for setting in settings(spec) {
            assert!(setting.doc.ends_with('.') && !setting.example.is_empty(), "{}.{}", spec.name, setting.name);
            assert!(setting.default.is_none() || !setting.required, "{}.{} is either", spec.name, setting.name);
        }
    }
}

#[test]
fn examples_are_kdl() {
    for spec in every_node().into_iter().filter(|spec| spec.name != FILE.name) {
        // `…` stands for what is left out.
        let text = spec.example.replace("{ … }", "{ }").replace(" …", "");
        let parsed = syntax::parse(Arc::from(text.as_str()));
        assert!(parsed.problems.is_empty(), "{}: {:?}", spec.example, parsed.problems.first());
        for setting in settings(spec).filter(|setting| !setting.example.contains('…')) {
            let text = format!("x {}={}", setting.name, setting.example);
            let parsed = syntax::parse(Arc::from(text.as_str()));
            assert!(parsed.problems.is_empty(), "{text}: {:?}", parsed.problems.first());
        }
    }
}

#[test]
fn defaults_have_their_types() {
    for spec in every_node() {
        for setting in settings(spec) {
            let Some(default) = setting.default else { continue };
            let fits = match setting.ty {
                Type::Duration | Type::SignedDuration => units::duration(default).is_ok(),
                Type::Percent(most) => units::percent(default).is_ok_and(|ratio| ratio <= most),
                Type::Integer(least, most) | Type::IntegerOrFactor(least, most) => {
                    default.parse().is_ok_and(|number: i64| (least..=most).contains(&number))
                }
                Type::Decimal(least, most) => default.parse().is_ok_and(|number: f64| (least..=most).contains(&number)),
                Type::Word(words) => words.iter().any(|word| word.name == default),
                Type::Metric => plan::Metric::from_name(default).is_some(),
                Type::Text => true,
                _ => false,
            };
            assert!(fits, "{}.{} has the default {default}", spec.name, setting.name);
        }
    }
}

/// Each gate of the schema lowers to the plan's gate of the same name, with nothing but its name and required settings.
#[test]
fn gates_are_the_plan_s() {
    for variant in GATE.variants {
        let required: Vec<String> = variant
            .settings
            .iter()
            .filter(|setting| setting.required)
            .map(|setting| format!("{}=sweep.throughput", setting.name))
            .collect();
        let needs_open = variant.name == "send-lag";
        let load = if needs_open {
            "load open rate=\"500/s\" connections=5 for=\"5s\""
        } else {
            "load closed connections=5 for=\"5s\""
        };
        let part = format!(
            "phase tried {{ over candidate cores; {load}; gate {} {}; repeat 5 }}",
            variant.name,
            required.join(" ")
        );
        let study = around(&part);
        let options = Options { host: Some(host()), ..Options::default() };
        let analysed = analyse(&memory(&study), &SourceId::new("study.kdl"), &options);
        let plan = analysed.plan.unwrap_or_else(|| panic!("{part}: {:?}", analysed.diagnostics));
        let names: Vec<&str> = plan.phase("tried").expect("a phase").gates.iter().map(plan::Gate::name).collect();
        assert_eq!(names, [variant.name]);
    }
    // The plan's enum is closed: this fails to compile when a gate is added there and not here.
    let count = |gate: &plan::Gate| match gate {
        plan::Gate::Census
        | plan::Gate::Counters
        | plan::Gate::Rows
        | plan::Gate::GeneratorProbe { .. }
        | plan::Gate::GeneratorBottleneck { .. }
        | plan::Gate::ServiceDemand { .. }
        | plan::Gate::Saturation { .. }
        | plan::Gate::Pace { .. }
        | plan::Gate::Steal { .. }
        | plan::Gate::Stalls { .. }
        | plan::Gate::SendLag { .. }
        | plan::Gate::LittlesLaw { .. }
        | plan::Gate::Mix { .. }
        | plan::Gate::Clock
        | plan::Gate::UtilisationLaw { .. } => 15,
    };
    assert_eq!(GATE.variants.len(), count(&plan::Gate::Census));
}

#[test]
fn the_standard_library_is_clean_and_formatted() {
    for (name, text) in analysis::stdlib::FILES {
        let parsed = syntax::parse(Arc::from(*text));
        assert!(parsed.problems.is_empty(), "{name}: {:?}", parsed.problems.first());
    }
}

/// What the generator's own summary and the report say without a gate goes by the same thresholds as the gate's defaults.
#[test]
fn the_generators_gate_defaults_to_the_thresholds_of_the_plan() {
    let gate = GATE.variants.iter().find(|variant| variant.name == "generator-bottleneck").expect("the gate");
    for (name, level) in [("busy", plan::Gate::GENERATOR_BUSY), ("receive-queue", plan::Gate::RECEIVE_QUEUE)] {
        let default = gate.settings.iter().find(|setting| setting.name == name).and_then(|setting| setting.default);
        assert_eq!(default.map(analysis::value::units::percent), Some(Ok(level)), "{name}");
    }
}
