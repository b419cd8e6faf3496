//! The DAG of steps and its hashes.

use plan::{ContentHash, Gate, Plan, Procedure, Step, StepId, StepKind};

/// Version of what the steps do. Raised when a step's meaning changes, so that old results are not reused.
const SEMANTICS: u32 = 1;

/// The steps of a plan whose phases, agreements and report are complete.
pub fn steps(plan: &Plan) -> Vec<Step> {
    let cells: usize = plan.phases.iter().map(|phase| phase.cells.len()).sum();
    let mut graph = Graph { steps: Vec::with_capacity(cells + plan.phases.len() + plan.candidates.len() * 2 + 8) };
    let database = plan.database.as_ref();
    let machine = (&plan.machine.candidate, &plan.machine.database, &plan.machine.load);

    let prepare_database =
        database.map(|database| graph.add(StepKind::PrepareDatabase, Vec::new(), &ContentHash::of(&database.image)));
    let prepare_probe = plan
        .probe
        .as_ref()
        .map(|probe| graph.add(StepKind::PrepareProbe, Vec::new(), &ContentHash::of(&(&probe.image, &probe.process))));
    let prepared: Vec<StepId> = plan
        .candidates
        .iter()
        .map(|candidate| {
            let kind = StepKind::PrepareCandidate { candidate: candidate.name.clone() };
            graph.add(kind, Vec::new(), &ContentHash::of(&(&candidate.image, &candidate.process)))
        })
        .collect();
    let start_database = database.map(|database| {
        let own = ContentHash::of(&(&database.settings, database.memory_bytes, &plan.machine.database));
        graph.add(StepKind::StartDatabase, prepare_database.into_iter().collect(), &own)
    });
    let template = database.map(|database| {
        graph.add(StepKind::MakeTemplate, start_database.into_iter().collect(), &database.template_hash)
    });

    let contract = ContentHash::of(&(&plan.contract, &plan.credentials));
    // What a candidate needs before it is measured: that it is made, that its database is there, that it keeps the contract.
    let ready: Vec<StepId> = plan
        .candidates
        .iter()
        .zip(&prepared)
        .map(|(candidate, prepared)| {
            if plan.contract.is_empty() {
                return *prepared;
            }
            let own = ContentHash::of(&(&contract, &candidate.env, candidate.port));
            let needs = std::iter::once(*prepared).chain(template).collect();
            graph.add(StepKind::VerifyContract { candidate: candidate.name.clone() }, needs, &own)
        })
        .collect();

    let mut estimates: Vec<(&str, StepId)> = Vec::new();
    for phase in &plan.phases {
        let read: Vec<StepId> = phase
            .reads
            .iter()
            .filter_map(|name| estimates.iter().find(|(known, _)| known == name).map(|(_, step)| *step))
            .collect();
        let probed = phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { .. }));
        let candidate_axis = phase.axes.iter().position(|axis| axis.factor == "candidate");
        let mut measured = Vec::with_capacity(phase.cells.len());
        for (index, cell) in phase.cells.iter().enumerate() {
            let mut needs: Vec<StepId> = Vec::with_capacity(read.len() + 3);
            if let (Some(axis), Procedure::Load(_) | Procedure::Start(_)) = (candidate_axis, &phase.procedure)
                && let Some(place) =
                    phase.axes[axis].levels.iter().position(|level| cell.levels.get(axis) == Some(level))
            {
                needs.extend(ready.get(place));
            }
            needs.extend(template);
            if probed {
                needs.extend(prepare_probe);
            }
            needs.extend(&read);
            let kind =
                StepKind::MeasureCell { phase: phase.name.clone(), cell: u32::try_from(index).unwrap_or(u32::MAX) };
            measured.push(graph.add(kind, needs, &cell.hash));
        }
        let own = ContentHash::of(&(
            &phase.repeat,
            &phase.gates,
            &phase.carried,
            &phase.estimates,
            (&phase.choose, &phase.demand),
            machine,
        ));
        let kind = StepKind::Estimate { phase: phase.name.clone() };
        estimates.push((&phase.name, graph.add(kind, measured, &own)));
    }
    let estimate = |name: &str| estimates.iter().find(|(known, _)| *known == name).map(|(_, step)| *step);
    let agreements: Vec<StepId> = plan
        .agreements
        .iter()
        .map(|agreement| {
            let mut needs: Vec<StepId> =
                [&agreement.left.phase, &agreement.right.phase].into_iter().filter_map(|name| estimate(name)).collect();
            needs.dedup();
            graph.add(StepKind::Agree { agreement: agreement.name.clone() }, needs, &ContentHash::of(agreement))
        })
        .collect();
    let needs = estimates.iter().map(|(_, step)| *step).chain(agreements).collect();
    graph.add(StepKind::Report, needs, &ContentHash::of(&(&plan.report, &plan.limits)));
    graph.steps
}

struct Graph {
    steps: Vec<Step>,
}

impl Graph {
    /// Adds a step; its hash covers its kind, its own content and the hashes of what it needs.
    fn add(&mut self, kind: StepKind, needs: Vec<StepId>, own: &ContentHash) -> StepId {
        let id = StepId(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
        let mut content = Vec::with_capacity(64 + needs.len() * 32);
        content.extend_from_slice(&SEMANTICS.to_le_bytes());
        content.push(tag(&kind));
        content.extend_from_slice(own.as_str().as_bytes());
        for need in &needs {
            if let Some(step) = self.steps.get(need.0 as usize) {
                content.extend_from_slice(step.hash.as_str().as_bytes());
            }
        }
        self.steps.push(Step { id, kind, needs, hash: ContentHash::of_bytes(&content) });
        id
    }
}

fn tag(kind: &StepKind) -> u8 {
    match kind {
        StepKind::PrepareCandidate { .. } => 1,
        StepKind::PrepareDatabase => 2,
        StepKind::PrepareProbe => 3,
        StepKind::StartDatabase => 4,
        StepKind::MakeTemplate => 5,
        StepKind::VerifyContract { .. } => 6,
        StepKind::MeasureCell { .. } => 7,
        StepKind::Estimate { .. } => 8,
        StepKind::Agree { .. } => 9,
        StepKind::Report => 10,
    }
}
