//! The standard library: KDL under `stdlib/`, part of the program. `use "std/http"` names one of its files.

/// Every source of the standard library with its text, in the order of the documentation.
pub static FILES: &[(&str, &str)] = &[
    ("std/http", include_str!("../../../stdlib/http.kdl")),
    ("std/postgres", include_str!("../../../stdlib/postgres.kdl")),
];

/// The names that `use` takes.
pub static NAMES: &[&str] = &["std/http", "std/postgres"];

/// The text of a source of the standard library.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_the_same() {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, NAMES);
        assert!(text("std/http").is_some() && text("std/nothing").is_none());
    }
}
