//! What is measured and where: machine, candidates, database, probe, credentials.

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::hash::ContentHash;
use crate::text::Text;

/// A role owns a CPU set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The system under test, or the probe that stands in for it.
    Candidate,
    /// The database server.
    Database,
    /// The load generator, and `exp` itself while it waits.
    Load,
}

/// The CPU layout that the study runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// Name, as written after `machine`.
    pub name: String,
    /// Why this one: named on the command line, or the only one that fits.
    pub chosen: String,
    /// CPUs of the candidate.
    pub candidate: CpuSet,
    /// CPUs of the database.
    pub database: CpuSet,
    /// CPUs of the generator.
    pub load: CpuSet,
    /// Where generators run, if not one process on the CPUs of `load`: all of them send the load together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorPlace>,
    /// Whether the study accepts that roles share a CPU.
    pub sharing_accepted: bool,
}

/// Where one of several generators runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GeneratorPlace {
    /// As what.
    pub on: GeneratorOn,
    /// Its CPUs; on another host, that host's. Empty: not pinned.
    pub cpus: CpuSet,
}

/// As what a generator runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorOn {
    /// A process of this machine.
    Process,
    /// A container on the Docker Engine that the run uses.
    Container,
    /// A container on another Docker Engine.
    Engine {
        /// Where that engine answers, such as `tcp://10.0.0.7:2375`.
        address: String,
        /// The address of this machine, as that host reaches it. `None`: the loopback address, for an engine on this machine.
        target: Option<std::net::IpAddr>,
    },
}

impl std::fmt::Display for GeneratorOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process => f.write_str("process"),
            Self::Container => f.write_str("container"),
            Self::Engine { address, .. } => f.write_str(address),
        }
    }
}

impl Machine {
    /// The CPUs of a role.
    pub fn cpus(&self, role: Role) -> &CpuSet {
        match role {
            Role::Candidate => &self.candidate,
            Role::Database => &self.database,
            Role::Load => &self.load,
        }
    }

    /// Every CPU that some role owns.
    pub fn all(&self) -> CpuSet {
        self.candidate.union(&self.database).union(&self.load)
    }
}

/// A container image: built from a directory, or pulled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Image {
    /// Where it comes from.
    pub source: ImageSource,
    /// Hash over everything that the image is made from.
    pub hash: ContentHash,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageSource {
    /// Built from a directory.
    Build {
        /// The build context, relative to the plan's root.
        context: String,
        /// The Dockerfile inside the context.
        dockerfile: String,
        /// Digest of the context's files.
        digest: String,
    },
    /// Pulled (or already present) under this reference.
    Pull {
        /// Such as `postgres:17`.
        reference: String,
    },
}

/// How a candidate runs without Docker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessRun {
    /// A command of the machine.
    Command(ProcessCommand),
    /// The no-op server inside `exp` itself (probe only).
    BuiltIn,
}

/// A command, its build, and what both need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProcessCommand {
    /// Directory in which both commands run, relative to the plan's root.
    pub directory: String,
    /// Digest of the directory's files.
    pub digest: String,
    /// Built once before anything is measured; empty where nothing is built.
    pub build: Vec<String>,
    /// The command that serves.
    pub run: Vec<String>,
    /// Programs that must be on PATH.
    pub needs: Vec<String>,
}

/// A request that answers 2xx once a server can serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ready {
    /// Path of the GET.
    pub path: String,
    /// How long it may take, in nanoseconds.
    pub within_ns: u64,
}

/// A system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Candidate {
    /// Name, as written after `candidate`.
    pub name: String,
    /// One line for people.
    pub label: String,
    /// How it runs on a Docker Engine.
    pub image: Option<Image>,
    /// How it runs as a process.
    pub process: Option<ProcessRun>,
    /// The TCP port it listens on, on 127.0.0.1.
    pub port: u16,
    /// That it speaks TLS there, and how its certificate is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<crate::transport::Tls>,
    /// Memory limit in bytes.
    pub memory_bytes: Option<u64>,
    /// Open files limit.
    pub open_files: u64,
    /// Environment, filled per cell. Variables: factors, `cores`, `port`, `database.*`, `<credentials>.*`.
    pub env: Vec<(String, Text)>,
    /// How it shows that it can serve.
    pub ready: Ready,
}

/// A server without application code, driven to see what generator and host can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// Name, as written after `probe`.
    pub name: String,
    /// How it runs on a Docker Engine.
    pub image: Option<Image>,
    /// How it runs as a process.
    pub process: Option<ProcessRun>,
    /// The TCP port it listens on, on 127.0.0.1.
    pub port: u16,
    /// That it speaks TLS there, and how its certificate is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<crate::transport::Tls>,
    /// Environment, as a candidate's.
    pub env: Vec<(String, Text)>,
    /// How it shows that it can serve.
    pub ready: Ready,
}

/// The database under the candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Database {
    /// Name, as written after `database`; also the name of the template.
    pub name: String,
    /// Image on a Docker Engine. The process backend uses the machine's own PostgreSQL.
    pub image: Option<Image>,
    /// Memory limit in bytes.
    pub memory_bytes: Option<u64>,
    /// Server settings, in order.
    pub settings: Vec<(String, String)>,
    /// Files that make the template, in order.
    pub template: Vec<SqlFile>,
    /// Rows that the template must hold.
    pub holds: Vec<Table>,
    /// What happens to the database of each cell.
    pub each_cell: CellDatabase,
    /// Hash over everything that makes the template.
    pub template_hash: ContentHash,
}

/// A file of SQL, with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SqlFile {
    /// Path, relative to the plan's root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A table and its number of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Table {
    /// The table.
    pub table: String,
    /// Its rows.
    pub rows: u64,
}

/// What happens to the database before each repetition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CellDatabase {
    /// A fresh clone of the template.
    pub clone: bool,
    /// Relations that are read into shared buffers.
    pub prewarm: Vec<String>,
    /// A checkpoint.
    pub checkpoint: bool,
    /// Whether to wait until writeback has settled, by counters.
    pub settle_writeback: bool,
}

/// An issuer of tokens. `${NAME.public-key}`, `${NAME.issuer}`, `${NAME.audience}` are its variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Credentials {
    /// Name, as written after `credentials`.
    pub name: String,
    /// Signature algorithm, such as `RS256`.
    pub algorithm: String,
    /// The `iss` claim.
    pub issuer: String,
    /// The `aud` claim.
    pub audience: String,
    /// The `sub` claim.
    pub subject: String,
    /// The tokens, minted at the start of a run.
    pub tokens: Vec<Token>,
}

/// One token. Fields that are `None` take the issuer's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Token {
    /// Name, as written after `token`.
    pub name: String,
    /// The `scope` claim.
    pub scope: Option<String>,
    /// `exp`, in seconds from now; may be negative.
    pub expires_in_s: i64,
    /// `nbf`, in seconds from now; may be positive.
    pub not_before_in_s: Option<i64>,
    /// `iss`, where it differs.
    pub issuer: Option<String>,
    /// `aud`, where it differs.
    pub audience: Option<String>,
    /// `sub`, where it differs.
    pub subject: Option<String>,
    /// `RS256`; `none`; `HS256` (signed with the public key's text, as the known attack does).
    pub algorithm: Option<String>,
    /// Signed by a key that the candidates don't know.
    pub foreign_key: bool,
    /// Sent as it stands, not minted at all.
    pub raw: Option<String>,
}
