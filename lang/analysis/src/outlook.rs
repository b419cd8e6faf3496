//! What a plan will cost: cells, repetitions, time, connections, rows. For `exp plan` and the live view.

use plan::{Gate, Phase, Plan, Procedure};

/// Seconds around a window: clone, prewarm, checkpoint and settling of the database, start and stop of the candidate.
/// Measured with a million rows of 150 MB on two cores: 4 to 6 s.
pub const AROUND_CELL_S: f64 = 5.0;
/// Seconds around a window without a database.
pub const AROUND_CELL_WITHOUT_DATABASE_S: f64 = 1.5;
/// Seconds of the generator probe before a repetition: start, load, stop.
pub const PROBE_S: f64 = 4.0;
/// Seconds to make the template, verify a candidate's contract, and start the database.
pub const TEMPLATE_S: f64 = 12.0;
/// See [`TEMPLATE_S`].
pub const CONTRACT_S: f64 = 4.0;

/// Bytes of a row of the template, its share of the indexes included. Measured: a million rows of the capacity study's table
/// take 150 MB. What a study's own rows take is not known before they are there.
pub const ROW_BYTES: u64 = 150;
/// PostgreSQL's own default of `max_wal_size`.
const DEFAULT_WAL_BYTES: u64 = 1 << 30;

/// What the databases of a plan need on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOutlook {
    /// Rows of the template.
    pub rows: u64,
    /// The template; a clone is as large. At most one clone lies beside it.
    pub template_bytes: u64,
    /// Write-ahead log, at most (`max_wal_size`).
    pub wal_bytes: u64,
}

/// Estimates what the plan needs on the disk. `None` without a database.
pub fn disk(plan: &Plan) -> Option<DiskOutlook> {
    let database = plan.database.as_ref()?;
    let rows: u64 = database.holds.iter().fold(0, |sum, table| sum.saturating_add(table.rows));
    let written = database.settings.iter().find(|(name, _)| name == "max_wal_size");
    Some(DiskOutlook {
        rows,
        // Halved, so that twice as much can still be counted.
        template_bytes: rows.saturating_mul(ROW_BYTES).min(u64::MAX / 4),
        wal_bytes: written
            .map_or(Some(DEFAULT_WAL_BYTES), |(_, size)| server_bytes(size, 1 << 20))
            .unwrap_or(DEFAULT_WAL_BYTES)
            .min(u64::MAX / 4),
    })
}

/// Bytes of a setting of PostgreSQL, such as `4GB`, `512 MB`; a number alone counts `unit`s.
/// Source: PostgreSQL's documentation, "Setting Parameters": kB, MB, GB and TB are powers of 1024.
pub fn server_bytes(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim() {
        "" => unit,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Seconds of a setting of PostgreSQL, such as `30min`; a number alone counts seconds. Source: as [`server_bytes`].
pub fn server_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Some(number * unit)
}

/// What a phase will cost.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOutlook {
    /// The phase.
    pub phase: String,
    /// Its cells.
    pub cells: u64,
    /// Valid repetitions that are wanted, over all cells.
    pub repetitions: u64,
    /// Repetitions at the most, void ones included.
    pub at_most: u64,
    /// Seconds, if every repetition is valid.
    pub seconds: f64,
    /// Seconds, if the budget of repetitions is used up.
    pub seconds_at_most: f64,
    /// Connections of the generator (or clients of pgbench).
    pub connections: u64,
}

/// What a plan will cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The phases, in the plan's order.
    pub phases: Vec<PhaseOutlook>,
    /// Repetitions that are wanted.
    pub repetitions: u64,
    /// Seconds, preparation without image builds included, if every repetition is valid.
    pub seconds: f64,
    /// Seconds, if every phase uses up its budget.
    pub seconds_at_most: f64,
    /// The largest memory limit of a candidate plus the database's, in bytes; 0 where none is set.
    pub memory_bytes: u64,
    /// Rows of the template.
    pub rows: u64,
}

/// Seconds of one repetition of the phase.
pub fn repetition_seconds(plan: &Plan, phase: &Phase) -> f64 {
    let around = if plan.database.is_some() { AROUND_CELL_S } else { AROUND_CELL_WITHOUT_DATABASE_S };
    match &phase.procedure {
        Procedure::Pgbench(pgbench) => around + pgbench.window_ns as f64 / 1e9,
        Procedure::Start(start) => around + start.window_ns as f64 / 1e9,
        Procedure::Load(load) => {
            let probed = phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { .. }));
            around + (load.window_ns + load.warm_up_ns) as f64 / 1e9 + if probed { PROBE_S } else { 0.0 }
        }
    }
}

/// Estimates what the plan will cost.
pub fn outlook(plan: &Plan) -> Outlook {
    let phases: Vec<PhaseOutlook> = plan
        .phases
        .iter()
        .map(|phase| {
            let cells = phase.cells.len() as u64;
            let repetitions = cells * u64::from(phase.repeat.valid);
            let at_most = cells * u64::from(phase.repeat.at_most);
            let each = repetition_seconds(plan, phase);
            let connections = match &phase.procedure {
                Procedure::Load(load) => u64::from(load.connections),
                Procedure::Pgbench(pgbench) => u64::from(pgbench.clients),
                Procedure::Start(_) => 0,
            };
            PhaseOutlook {
                phase: phase.name.clone(),
                cells,
                repetitions,
                at_most,
                seconds: repetitions as f64 * each,
                seconds_at_most: at_most as f64 * each,
                connections,
            }
        })
        .collect();
    let template = if plan.database.is_some() { TEMPLATE_S } else { 0.0 };
    let contract = if plan.contract.is_empty() { 0.0 } else { CONTRACT_S * plan.candidates.len() as f64 };
    let candidate_memory = plan.candidates.iter().filter_map(|candidate| candidate.memory_bytes).max().unwrap_or(0);
    let database_memory = plan.database.as_ref().and_then(|database| database.memory_bytes).unwrap_or(0);
    Outlook {
        repetitions: phases.iter().map(|phase| phase.repetitions).sum(),
        seconds: template + contract + phases.iter().map(|phase| phase.seconds).sum::<f64>(),
        seconds_at_most: template + contract + phases.iter().map(|phase| phase.seconds_at_most).sum::<f64>(),
        memory_bytes: candidate_memory.saturating_add(database_memory),
        rows: plan.database.iter().flat_map(|database| &database.holds).map(|table| table.rows).sum(),
        phases,
    }
}

#[cfg(test)]
mod tests {
    use super::server_bytes;

    #[test]
    fn sizes_are_read_as_postgresql_reads_them() {
        for (text, expected) in [
            ("4GB", Some(4 << 30)),
            ("512 MB", Some(512 << 20)),
            ("128", Some(128 << 13)),
            ("8kB", Some(8 << 10)),
            ("1GiB", None),
            ("", None),
            ("99999999999999TB", None),
        ] {
            assert_eq!(server_bytes(text, 8_192), expected, "{text}");
        }
    }
}
