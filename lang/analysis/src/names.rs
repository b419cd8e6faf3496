//! Names that are nearly right: the nearest of those that exist.

/// The name of `existing` that `wanted` most likely means, if one is near enough: case, `_` and `-` don't count, and one
/// slip per three letters is forgiven (optimal string alignment: insertions, deletions, changes, swaps).
pub fn nearest<'a>(wanted: &str, existing: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(wanted);
    // A text of this length is no slip of a name, and comparing it would be quadratic.
    if folded.len() > 64 {
        return None;
    }
    let most = (folded.len() / 3).max(1);
    existing
        .into_iter()
        .map(|name| (distance(&folded, &fold(name), most), name))
        .filter(|(distance, name)| *distance <= most && *name != wanted && !name.is_empty())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn fold(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn distance(left: &[char], right: &[char], most: usize) -> usize {
    if left.len().abs_diff(right.len()) > most {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut cost = (above[j] + usize::from(l != r)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

/// "; did you mean `x`?" or nothing.
pub fn hint<'a>(wanted: &str, existing: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, existing).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Names as people list them: `a`, `b` and `c`.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_name() {
        let names = ["warm-up", "connections", "for", "repeat", "generator-probe"];
        for (wanted, expected) in [
            ("warmup", Some("warm-up")),
            ("Warm_Up", Some("warm-up")),
            ("conections", Some("connections")),
            ("repaet", Some("repeat")),
            ("generatr-prob", Some("generator-probe")),
            ("fro", Some("for")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }

    #[test]
    fn lists_names() {
        assert_eq!(listed([]), "nothing");
        assert_eq!(listed(["a"]), "`a`");
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
