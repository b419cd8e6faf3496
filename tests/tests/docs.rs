//! The documentation tells the truth: its examples are checked, its links lead somewhere.

use std::fs;
use std::path::Path;

use tests::{Place, root, run};

/// Every ```kdl block of a page.
fn studies(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match (&mut open, line) {
            (None, "```kdl") => open = Some(String::new()),
            (Some(_), "```") => found.extend(open.take()),
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    found
}

#[test]
fn the_study_in_the_readme_has_no_problems() {
    let page = fs::read_to_string(root().join("README.md")).expect("the README");
    let studies = studies(&page);
    assert_eq!(studies.len(), 1);
    let place = Place::new("readme");
    place.write("bin/service", "");
    place.write("study.kdl", &studies[0]);
    let ended = run(place.path(), &["check", "study.kdl"]).expect_code(&[0]);
    assert!(ended.err.contains("no problems"), "{}{}", ended.out, ended.err);
    // And it is laid out as `exp fmt` would.
    run(place.path(), &["fmt", "--check", "study.kdl"]).expect_code(&[0]);
}

#[test]
fn the_projects_own_studies_have_no_problems() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("experiments")).expect("experiments").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "kdl") {
            let path = entry.path().display().to_string();
            let ended = run(&root(), &["check", &path]).expect_code(&[0]);
            assert!(ended.err.contains("no problems"), "{path}: {}{}", ended.out, ended.err);
            run(&root(), &["fmt", "--check", &path]).expect_code(&[0]);
            checked += 1;
        }
    }
    assert!(checked > 0, "there are no studies");
}

#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for page in ["README.md", "docs/architecture.md", "docs/commands.md", "docs/glossary.md", "docs/generator.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let place = Path::new(page).parent().expect("a directory").to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !target.starts_with("http") && !target.starts_with('#') {
                let path = root().join(&place).join(target.split('#').next().unwrap_or(target));
                assert!(path.exists(), "{page} links to {target}, which is not there");
                links += 1;
            }
        }
    }
    assert!(links > 5, "the test looked at nothing");
}
