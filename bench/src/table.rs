//! Tables for the terminal and for Markdown: the first column left, figures right.

use std::fmt::Write;

/// Rows of cells under headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
    /// How many leading columns hold words, aligned to the left.
    words: usize,
}

impl Table {
    /// `headers` stand between bars, as in Markdown.
    pub fn new(words: usize, headers: &str) -> Self {
        let headers = headers.split('|').map(|header| header.trim().to_owned());
        Self {
            headers: headers.collect(),
            rows: Vec::new(),
            words,
        }
    }

    /// Missing cells stay empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.headers.len(), String::new());
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.headers.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| width(&row[column]));
                cells
                    .chain([width(&self.headers[column])])
                    .max()
                    .unwrap_or(0)
            })
            .collect()
    }

    fn cell(&self, column: usize, text: &str, width_wanted: usize) -> String {
        let pad = " ".repeat(width_wanted.saturating_sub(width(text)));
        if column < self.words {
            format!("{text}{pad}")
        } else {
            format!("{pad}{text}")
        }
    }

    pub fn terminal(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        for row in [&self.headers, &rule].into_iter().chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(i, text)| self.cell(i, text, widths[i]))
                .collect();
            let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        }
        out
    }

    pub fn markdown(&self) -> String {
        let widths: Vec<usize> = self.widths().into_iter().map(|w| w.max(3)).collect();
        let line = |row: &[String]| {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(i, text)| self.cell(i, &text.replace('|', "\\|"), widths[i]))
                .collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(i, w)| {
                if i < self.words {
                    "-".repeat(*w)
                } else {
                    format!("{}:", "-".repeat(w - 1))
                }
            })
            .collect();
        let rows = self.rows.iter().map(|row| line(row));
        [line(&self.headers), line(&rule)]
            .into_iter()
            .chain(rows)
            .collect()
    }
}

/// Characters, not bytes: cells hold dashes, micro signs and relations.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn sample() -> Table {
        let mut table = Table::new(1, "command | µs");
        table.row(vec!["GET".into(), "7.1".into()]);
        table.row(vec!["a|b".into()]);
        table
    }

    #[test]
    fn terminal_columns_line_up() {
        assert_eq!(
            sample().terminal(),
            "command   µs\n───────  ───\nGET      7.1\na|b\n"
        );
    }

    #[test]
    fn markdown_escapes_and_aligns() {
        assert_eq!(
            sample().markdown(),
            "| command |  µs |\n| ------- | --: |\n| GET     | 7.1 |\n| a\\|b    |     |\n"
        );
    }
}
