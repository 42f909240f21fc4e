//! The pages that are committed are those the code gives.

use super::{all, of_the_other, percent, wrapped};
use std::path::Path;

#[test]
fn committed_pages_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/types");
    let pages = all();
    for page in &pages {
        let committed = std::fs::read_to_string(directory.join(&page.file)).unwrap_or_default();
        assert!(
            committed == page.text,
            "docs/types/{} is not what the code says: cargo xtask algebra --write",
            page.file
        );
    }
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            name == "quiet.md" || name == "keys.md" || pages.iter().any(|page| name == *page.file),
            "{name:?} is of no type"
        );
    }
}

#[test]
fn the_other_operation_is_on_y() {
    assert_eq!(of_the_other("put(x, n)"), "put(y, n)");
    assert_eq!(of_the_other("max(index, x)"), "max(index, y)");
}

#[test]
fn shares_hide_neither_the_first_nor_the_last() {
    assert_eq!(percent(0, 0), "–");
    assert_eq!(percent(1, 1000), "1 %");
    assert_eq!(percent(999, 1000), "99 %");
    assert_eq!(percent(1000, 1000), "100 %");
}

#[test]
fn lines_are_not_too_long() {
    let long = "word ".repeat(50);
    assert!(wrapped(&long).lines().all(|line| line.len() <= 100));
    assert_eq!(wrapped("a  b\n c"), "a b c");
}
