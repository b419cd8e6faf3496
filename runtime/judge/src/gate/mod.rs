//! The gates: one file for each kind of thing that can be amiss.
//!
//! A gate gives an outcome for every repetition, with the values that decided, passed or not. Missing data fails.

mod answers;
mod bottleneck;
mod counters;
mod generator;
mod host;
mod relative;

use std::collections::BTreeMap;

use journal::RepetitionFacts;
use plan::{Account, CpuSet, Gate, Metric, Phase, Plan, Procedure, Workload};

use crate::evidence::Evidence;
use crate::judgement::{ConditionOutcome, CpuPace, GateKind, GateOutcome, GateValue, QuietTime};
use crate::latency::Latency;

pub(crate) use bottleneck::remark as bottleneck_remark;
pub(crate) use generator::limited_by;
pub(crate) use relative::apply as apply_relative;

/// What a gate may look at.
pub(crate) struct Context<'a> {
    pub plan: &'a Plan,
    pub phase: &'a Phase,
    pub facts: &'a RepetitionFacts,
    pub latency: &'a Latency,
    /// The CPUs that are measured in this cell: the candidate's, or the database's where it is measured alone.
    pub cpus: &'a CpuSet,
    pub quiet: &'a BTreeMap<u32, QuietTime>,
    pub pace: &'a BTreeMap<u32, CpuPace>,
    pub values: &'a BTreeMap<Metric, f64>,
    pub missing: &'a BTreeMap<Metric, String>,
}

impl Context<'_> {
    /// The workload of the phase, if a candidate is under load.
    fn workload(&self) -> Option<&Workload> {
        match &self.phase.procedure {
            Procedure::Load(load) => self.plan.workload(&load.workload),
            Procedure::Pgbench(_) | Procedure::Start(_) => None,
        }
    }

    /// Whether requests are sent on schedule.
    fn is_open(&self) -> bool {
        matches!(&self.phase.procedure, Procedure::Load(load) if load.rate.is_some())
    }

    /// Whether what sends the load accounts for this.
    fn gives(&self, account: Account) -> bool {
        matches!(&self.phase.procedure, Procedure::Load(load) if load.with.gives(account, load.rate.is_some()))
    }

    /// What was noted while facts about `subject` were gathered, as the end of a sentence.
    fn noted(&self, subject: &str) -> String {
        let notes: Vec<&str> = self
            .facts
            .findings
            .iter()
            .filter(|finding| concerns(&finding.what, subject))
            .map(|finding| finding.why.as_str())
            .collect();
        if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
    }

    fn value(&self, metric: Metric) -> Result<f64, String> {
        self.values.get(&metric).copied().ok_or_else(|| match self.missing.get(&metric) {
            Some(why) => why.clone(),
            None => format!("there is no {}", metric.name()),
        })
    }
}

/// Whether what a finding concerns is the subject, a part of it, or the whole that it is a part of; a sampler that failed concerns all
/// that was sampled.
fn concerns(what: &str, subject: &str) -> bool {
    let is_part = |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|rest| rest.starts_with(' '));
    what == subject || is_part(what, subject) || is_part(subject, what) || what == "sampler"
}

/// The outcome of a gate that needs no other repetition; `None` for one that compares with the cell's best.
pub(crate) fn absolute(gate: &Gate, context: &Context<'_>) -> Option<GateOutcome> {
    let draft = match gate {
        Gate::Census => answers::census(context),
        Gate::Rows => answers::rows(context),
        Gate::Mix { tolerance } => answers::mix(context, *tolerance),
        Gate::Counters => counters::counters(context),
        Gate::Clock => counters::clock(context),
        Gate::UtilisationLaw { tolerance } => counters::utilisation_law(context, *tolerance),
        Gate::Pace { quiet_share } => host::pace(context, *quiet_share),
        Gate::Steal { max } => host::steal(context, *max),
        Gate::Stalls { over_ns, budget, quantile } => host::stalls(context, *over_ns, *budget, *quantile),
        Gate::GeneratorProbe { at, .. } => generator::probe(context, *at),
        Gate::GeneratorBottleneck { busy, receive_queue } => bottleneck::gate(context, *busy, *receive_queue),
        Gate::SendLag { p99_ns } => generator::send_lag(context, *p99_ns),
        Gate::LittlesLaw { tolerance } => generator::littles_law(context, *tolerance),
        Gate::ServiceDemand { .. } | Gate::Saturation { .. } => return None,
    };
    Some(draft.named(gate.name()))
}

/// The outcome that every repetition under load has where the study has a contract: its candidate passed it.
pub(crate) fn contract(plan: &Plan, evidence: &Evidence, candidate: Option<&str>) -> GateOutcome {
    let mut draft = Draft::new(GateKind::Wrong);
    let cases = candidate.and_then(|candidate| evidence.contracts.get(candidate));
    match (candidate, cases) {
        (None, _) => draft.fail("it is not known which candidate's contract counts here"),
        (Some(name), None) => draft.fail(format!("the contract was never checked against {name}")),
        (Some(name), Some(cases)) => {
            draft.note("cases", Some(cases.len() as f64), "count");
            let unchecked = plan.contract.iter().find(|case| !cases.iter().any(|outcome| outcome.case == case.name));
            if let Some(case) = unchecked {
                draft.fail(format!("the contract's case `{}` was never checked against {name}", case.name));
            }
            if let Some(problem) = evidence.contract_problem(name) {
                draft.fail(problem);
            }
        }
    }
    draft.pass_with(|| "the candidate passed its contract".to_owned());
    draft.named("contract")
}

/// The outcome of a phase's `carried` conditions as a gate: all of them can be judged.
pub(crate) fn conditions(context: &Context<'_>) -> (Vec<ConditionOutcome>, Option<bool>, Option<GateOutcome>) {
    if context.phase.carried.is_empty() {
        return (Vec::new(), None, None);
    }
    let mut draft = Draft::new(GateKind::Wrong);
    let mut outcomes = Vec::new();
    for condition in &context.phase.carried {
        let value = context.value(condition.metric);
        draft.note(condition.metric.name(), value.as_ref().ok().copied(), condition.metric.unit());
        if let Err(why) = &value {
            draft.fail(format!("`{}` can't be judged: {why}", condition.written));
        }
        outcomes.push(ConditionOutcome {
            written: condition.written.clone(),
            held: value.as_ref().is_ok_and(|value| condition.comparison.holds(*value, condition.value)),
            value: value.ok(),
        });
    }
    // A request without an answer in time was not carried, whatever the conditions say of the others.
    let all_answered = context.facts.load.as_ref().is_some_and(|load| answers::unanswered(load) == 0);
    let carried = (!draft.failed()).then(|| all_answered && outcomes.iter().all(|outcome| outcome.held));
    draft.pass_with(|| "every condition can be judged".to_owned());
    (outcomes, carried, Some(draft.named("conditions")))
}

/// An outcome in the making.
pub(crate) struct Draft {
    values: Vec<GateValue>,
    problems: Vec<String>,
    sentence: String,
    kind: GateKind,
}

impl Draft {
    fn new(kind: GateKind) -> Self {
        Self { values: Vec::new(), problems: Vec::new(), sentence: String::new(), kind }
    }

    /// Records a value that decides.
    fn note(&mut self, name: impl Into<String>, value: Option<f64>, unit: &str) {
        self.values.push(GateValue {
            name: name.into(),
            value: value.filter(|value| value.is_finite()),
            unit: unit.to_owned(),
        });
    }

    /// The gate fails, for this reason.
    fn fail(&mut self, why: impl Into<String>) {
        self.problems.push(why.into());
    }

    /// The gate fails for this reason, which means something else than the gate's failures usually do.
    fn fail_as(&mut self, kind: GateKind, why: impl Into<String>) {
        self.kind = kind;
        self.problems.push(why.into());
    }

    fn failed(&self) -> bool {
        !self.problems.is_empty()
    }

    /// The sentence of a gate that passes, where nothing else was said.
    fn pass_with_if_unsaid(&mut self, sentence: impl FnOnce() -> String) {
        if self.sentence.is_empty() {
            self.pass_with(sentence);
        }
    }

    /// The sentence of a gate that passes.
    fn pass_with(&mut self, sentence: impl FnOnce() -> String) {
        if !self.failed() {
            self.sentence = sentence();
        }
    }

    fn named(self, gate: &str) -> GateOutcome {
        let passed = self.problems.is_empty();
        GateOutcome {
            gate: gate.to_owned(),
            passed,
            values: self.values,
            sentence: if passed { self.sentence } else { self.problems.join("; ") },
            kind: self.kind,
        }
    }
}
