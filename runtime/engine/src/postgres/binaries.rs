//! PostgreSQL's programs on this machine.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::StepError;

/// Where distributions install the programs: a directory and what stands before the version in the names below it.
/// Debian `/usr/lib/postgresql/17/bin`, Red Hat `/usr/pgsql-17/bin`, Alpine `/usr/libexec/postgresql17`.
const VERSIONED: [(&str, &str); 4] =
    [("/usr/lib/postgresql", ""), ("/usr", "pgsql-"), ("/usr/libexec", "postgresql"), ("/usr/local", "pgsql-")];

/// PostgreSQL's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory that holds `initdb` and `postgres`.
    pub directory: PathBuf,
    /// `pgbench`, where it is installed beside them or is on PATH.
    pub pgbench: Option<PathBuf>,
}

impl Binaries {
    /// Finds PostgreSQL's programs: on PATH, else the newest where distributions install them.
    ///
    /// # Errors
    /// When there are none; it names the packages. Class environment.
    pub fn find() -> Result<Self, StepError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_in(&path, &VERSIONED.map(|(parent, prefix)| (Path::new(parent), prefix)))
    }

    /// The programs of this machine; where there are none and the feature `embedded` is built in, fetched ones.
    ///
    /// # Errors
    /// When there are none and none can be had. Class environment.
    pub async fn find_or_fetch() -> Result<Self, StepError> {
        let found = Self::find();
        #[cfg(feature = "embedded")]
        if found.is_err() {
            return super::embedded::fetch().await;
        }
        found
    }

    /// The programs of one directory, if `initdb` and `postgres` are there.
    pub fn of(directory: &Path) -> Option<Self> {
        let is_whole = ["initdb", "postgres"].iter().all(|name| is_program(&directory.join(name)));
        let pgbench = Some(directory.join("pgbench")).filter(|path| is_program(path));
        is_whole.then(|| Self { directory: directory.to_owned(), pgbench })
    }

    fn find_in(path: &OsStr, versioned: &[(&Path, &str)]) -> Result<Self, StepError> {
        let on_path: Vec<PathBuf> = std::env::split_paths(path).filter(|path| path.is_absolute()).collect();
        let installed = versioned.iter().flat_map(|(parent, prefix)| newest_first(parent, prefix));
        let found = on_path.iter().cloned().chain(installed).find_map(|directory| Self::of(&directory));
        let Some(mut binaries) = found else {
            let places: Vec<String> =
                versioned.iter().map(|(parent, prefix)| format!("{}/{prefix}*", parent.display())).collect();
            return Err(StepError::environment(
                "PostgreSQL's programs `initdb` and `postgres` were not found",
                format!("neither PATH nor {} holds both", places.join(", ")),
                ADVICE,
            ));
        };
        if binaries.pgbench.is_none() {
            binaries.pgbench = on_path.iter().map(|path| path.join("pgbench")).find(|path| is_program(path));
        }
        Ok(binaries)
    }
}

const ADVICE: &str = if cfg!(feature = "embedded") {
    "install the package postgresql (Debian and Ubuntu; pgbench and contrib are in it), or postgresql-server and \
     postgresql-contrib (Fedora, Red Hat), or postgresql and postgresql-contrib (Alpine)"
} else {
    "install the package postgresql (Debian and Ubuntu; pgbench and contrib are in it), or postgresql-server and \
     postgresql-contrib (Fedora, Red Hat), or postgresql and postgresql-contrib (Alpine); or build exp with \
     `--features engine/embedded`, which fetches a PostgreSQL; or use the docker backend"
};

/// The directories of the versions below `parent`, the newest first; each once with `bin` and once as it is.
fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut versions: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let numbers = name.strip_prefix(prefix)?.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
            Some((numbers, entry.path()))
        })
        .collect();
    versions.sort_by(|left, right| right.cmp(left));
    versions.into_iter().flat_map(|(_, path)| [path.join("bin"), path]).collect()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn install(directory: &Path, programs: &[&str]) {
        fs::create_dir_all(directory).expect("a directory");
        for program in programs {
            let path = directory.join(program);
            File::create(&path).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
    }

    #[test]
    fn path_comes_first_then_the_newest_version() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        let debian = at("lib/postgresql");
        let find = |path: &Path| Binaries::find_in(path.as_os_str(), &[(&debian, ""), (&at("usr"), "pgsql-")]);

        let error = find(&at("nothing")).expect_err("nothing is installed");
        assert_eq!(error.class, crate::error::Class::Environment);
        assert!(error.failure.next.contains("install the package postgresql"), "{error:?}");

        install(&at("usr/pgsql-16/bin"), &["initdb", "postgres", "pgbench"]);
        assert_eq!(find(&at("nothing")).map(|found| found.directory), Ok(at("usr/pgsql-16/bin")));
        install(&debian.join("9.6/bin"), &["initdb", "postgres"]);
        install(&debian.join("15/bin"), &["initdb", "postgres"]);
        install(&debian.join("17/bin"), &["pgbench"]);
        let newest = find(&at("nothing")).expect("installed");
        assert_eq!(newest, Binaries { directory: debian.join("15/bin"), pgbench: None });

        install(&at("path"), &["pgbench"]);
        let newest = find(&at("path")).expect("installed");
        assert_eq!(newest, Binaries { directory: debian.join("15/bin"), pgbench: Some(at("path/pgbench")) });
        install(&at("path"), &["initdb", "postgres"]);
        assert_eq!(find(&at("path")).map(|found| found.directory), Ok(at("path")));
    }
}
