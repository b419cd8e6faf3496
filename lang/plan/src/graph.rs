//! The DAG of steps: what has to happen, what each step needs, and a hash of what can change its result.

use petgraph::algo::toposort;
use petgraph::graphmap::DiGraphMap;
use serde::{Deserialize, Serialize};

use crate::hash::ContentHash;

/// Index of a step in the plan's `steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(pub u32);

/// One step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// Its own index.
    pub id: StepId,
    /// What is done.
    pub kind: StepKind,
    /// Steps that must be finished before.
    pub needs: Vec<StepId>,
    /// Hash over everything that can change its result, the hashes of `needs` included.
    pub hash: ContentHash,
}

/// What a step does. Closed: the engine has one file for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Builds or pulls the image (or builds the process) of a candidate.
    PrepareCandidate {
        /// The candidate.
        candidate: String,
    },
    /// Builds or pulls the database's image.
    PrepareDatabase,
    /// Builds or pulls the probe's image.
    PrepareProbe,
    /// Starts the database server.
    StartDatabase,
    /// Makes the template database and locks it.
    MakeTemplate,
    /// Checks the contract against one candidate.
    VerifyContract {
        /// The candidate.
        candidate: String,
    },
    /// Measures a cell's repetitions. The cells of a phase are interleaved in the order of the phase's slots.
    MeasureCell {
        /// The phase.
        phase: String,
        /// Index into the phase's cells.
        cell: u32,
    },
    /// Estimates a phase's figures and makes its choice.
    Estimate {
        /// The phase.
        phase: String,
    },
    /// Checks an agreement.
    Agree {
        /// The agreement.
        agreement: String,
    },
    /// Writes the report.
    Report,
}

/// The nodes of a cycle, in order; the first needs the second and so on, the last needs the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<String>);

/// Sorts names so that each stands after those it reads, keeping the given order where there is a choice.
///
/// # Errors
/// The cycle, when there is one.
pub fn sort_by_reads<'a>(nodes: &[(&'a str, Vec<&'a str>)]) -> Result<Vec<&'a str>, Cycle> {
    let mut sorted: Vec<&str> = Vec::new();
    let mut left: Vec<usize> = (0..nodes.len()).collect();
    while !left.is_empty() {
        let next = left.iter().position(|&index| {
            nodes[index].1.iter().all(|read| sorted.contains(read) || !nodes.iter().any(|(name, _)| name == read))
        });
        match next {
            Some(position) => sorted.push(nodes[left.remove(position)].0),
            None => return Err(find_cycle(nodes, &left)),
        }
    }
    Ok(sorted)
}

fn find_cycle(nodes: &[(&str, Vec<&str>)], left: &[usize]) -> Cycle {
    let mut path: Vec<&str> = Vec::new();
    let mut current = left[0];
    loop {
        let (name, reads) = &nodes[current];
        if let Some(start) = path.iter().position(|seen| seen == name) {
            return Cycle(path[start..].iter().map(|&name| name.to_owned()).collect());
        }
        path.push(name);
        // Every node that is left reads another one that is left, else it would have been sorted.
        match left.iter().find(|&&index| reads.contains(&nodes[index].0)) {
            Some(&index) => current = index,
            None => return Cycle(path.into_iter().map(str::to_owned).collect()),
        }
    }
}

/// Whether the steps' ids are their indices and their `needs` form a DAG; the topological order if so.
///
/// # Errors
/// A sentence that names the step at fault.
pub fn topological_order(steps: &[Step]) -> Result<Vec<StepId>, String> {
    let mut graph = DiGraphMap::<u32, ()>::new();
    for (index, step) in steps.iter().enumerate() {
        if step.id.0 as usize != index {
            return Err(format!("step {} stands at place {index}", step.id.0));
        }
        graph.add_node(step.id.0);
        for need in &step.needs {
            if need.0 as usize >= steps.len() {
                return Err(format!("step {} needs step {}, which does not exist", step.id.0, need.0));
            }
            graph.add_edge(need.0, step.id.0, ());
        }
    }
    toposort(&graph, None)
        .map(|order| order.into_iter().map(StepId).collect())
        .map_err(|cycle| format!("step {} needs itself", cycle.node_id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_phases_after_what_they_read() {
        let nodes = [("report", vec!["b"]), ("b", vec!["a", "missing"]), ("a", vec![])];
        assert_eq!(sort_by_reads(&nodes), Ok(vec!["a", "b", "report"]));
    }

    #[test]
    fn names_the_cycle() {
        let nodes = [("free", vec![]), ("x", vec!["y"]), ("y", vec!["z"]), ("z", vec!["y"])];
        assert_eq!(sort_by_reads(&nodes), Err(Cycle(vec!["y".into(), "z".into()])));
    }

    #[test]
    fn refuses_a_step_that_needs_itself() {
        let step = |id: u32, needs: &[u32]| Step {
            id: StepId(id),
            kind: StepKind::Report,
            needs: needs.iter().map(|&need| StepId(need)).collect(),
            hash: ContentHash::of_bytes(b""),
        };
        assert_eq!(topological_order(&[step(0, &[]), step(1, &[0])]), Ok(vec![StepId(0), StepId(1)]));
        assert!(topological_order(&[step(0, &[1]), step(1, &[0])]).is_err());
        assert!(topological_order(&[step(0, &[7])]).is_err());
        assert!(topological_order(&[step(3, &[])]).is_err());
    }
}
