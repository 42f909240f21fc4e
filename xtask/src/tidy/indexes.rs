//! Tables that readers look things up in are whole: the glossary defines each word once, the index of
//! decision records has each record, and the index of the documents each page. Of `docs/reference`, which
//! is generated, the index names the folder.

use super::Violation;
use crate::project::File;
use std::collections::BTreeSet;

const RULE: &str = "indexes";
const GLOSSARY: &str = "docs/glossary.md";
const DOCUMENTS: &str = "docs/README.md";

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some(glossary) = files.iter().find(|file| file.path == GLOSSARY) {
        found.extend(twice(glossary));
    }
    let Some(index) = files.iter().find(|file| file.path == DOCUMENTS) else {
        return found;
    };
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let Some(name) = page
            .path
            .strip_prefix("docs/")
            .filter(|name| *name != "README.md")
        else {
            continue;
        };
        // A page stands in the index of its folder or in that of all documents.
        let (folder, base) = name.rsplit_once('/').unwrap_or(("", name));
        let own = format!("docs/{folder}/README.md");
        let listed = match files.iter().find(|file| file.path == own) {
            _ if folder == "reference" => index.text.contains("(reference"),
            Some(own) if base != "README.md" && own.text.contains(&format!("({base}")) => true,
            _ => index.text.contains(&format!("({name}")),
        };
        if !listed {
            let place = if base == "README.md" || folder.is_empty() {
                DOCUMENTS
            } else {
                &own
            };
            found.push(Violation::new(
                RULE,
                place,
                format!("does not link {}", page.path),
            ));
        }
    }
    found
}

/// Words that the tables of the glossary define more than once. What stands in round brackets does not
/// make two words of one.
fn twice(glossary: &File) -> Vec<Violation> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (line, row) in glossary.text.lines().enumerate() {
        let Some(cell) = row
            .strip_prefix("| ")
            .and_then(|row| row.split(" |").next())
        else {
            continue;
        };
        for word in cell.split(',') {
            let word = word.split('(').next().unwrap_or(word).trim();
            if word != "word" && !word.is_empty() && !seen.insert(word.to_owned()) {
                found.push(Violation::at(
                    RULE,
                    GLOSSARY,
                    line,
                    format!("defines \"{word}\" again"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        check(&repository(files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_word_is_defined_once() {
        let text = "| word | meaning |\n|---|---|\n| a, b | x |\n| b (of c) | y |\n";
        assert_eq!(
            complaints(&[(GLOSSARY, text)]),
            ["docs/glossary.md:4: [indexes] defines \"b\" again"]
        );
    }

    #[test]
    fn pages_stand_in_the_index_of_their_folder() {
        let files = [
            (DOCUMENTS, "[b](b.md) [adr](adr/README.md) [c](x/c.md)"),
            ("docs/b.md", ""),
            ("docs/x/c.md", ""),
            ("docs/adr/README.md", "[1](0001-one.md)"),
            ("docs/adr/0001-one.md", ""),
        ];
        assert!(complaints(&files).is_empty());
        let mut more = files.to_vec();
        more.extend([("docs/adr/0002-two.md", ""), ("docs/e.md", "")]);
        assert_eq!(
            complaints(&more),
            [
                "docs/adr/README.md: [indexes] does not link docs/adr/0002-two.md",
                "docs/README.md: [indexes] does not link docs/e.md"
            ]
        );
    }
}
