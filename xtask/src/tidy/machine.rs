//! Nothing in the repository depends on the machine it was written on: no path into somebody's
//! home or working directory.

use super::Violation;
use crate::project::File;

const RULE: &str = "machine";

/// Beginnings of paths that exist on one machine only. Spelt in two halves, so that this file
/// itself does not contain them.
const PLACES: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/tar", "get-"),
];

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        for (line, text) in file.text.lines().enumerate() {
            if let Some(place) = PLACES.iter().find(|place| names(text, place)) {
                found.push(Violation::at(
                    RULE,
                    &file.path,
                    line,
                    format!("names {place}, a path of one machine"),
                ));
            }
        }
    }
    found
}

/// Whether `place` stands in `text` as the beginning of a path, not inside of a longer one.
fn names(text: &str, place: &str) -> bool {
    text.match_indices(place)
        .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    #[test]
    fn each_place_is_found_in_any_file() {
        for place in PLACES {
            assert_eq!(
                check(&repository(&[("docs/a.md", &format!("see {place}x"))])).len(),
                1,
                "{place}"
            );
        }
    }

    #[test]
    fn longer_paths_are_not_meant() {
        let text = format!("https://example.org{}x and a{}b", PLACES[0], PLACES[1]);
        assert!(check(&repository(&[("a.md", &text)])).is_empty());
    }
}
