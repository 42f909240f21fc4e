//! What a section hands back, and how it becomes a page, its charts and an entry in `results.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::date;
use crate::plot::Chart;
use crate::procfs::Machine;
use crate::table::Table;

/// The result of one section.
#[derive(Debug)]
pub struct Report {
    /// The name of its files and of its entry in `results.json`.
    pub slug: &'static str,
    /// The page it is a part of; absent where it has one of its own.
    pub part_of: Option<&'static str>,
    pub title: String,
    /// The command that prints it.
    pub command: String,
    /// How it was measured, a paragraph each.
    pub method: Vec<String>,
    pub table: Table,
    pub chart: Option<Chart>,
    /// What has to be known to read the figures.
    pub notes: Vec<String>,
    pub data: Value,
}

/// Where and with which servers it was measured.
#[derive(Debug)]
pub struct Setting {
    pub machine: Machine,
    /// Versions by server name.
    pub versions: BTreeMap<String, String>,
}

impl Setting {
    fn servers(&self) -> String {
        let servers: Vec<String> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        servers.join(", ")
    }
}

impl Report {
    pub fn terminal(&self) -> String {
        let mut out = format!("\n{}\n\n{}", self.title, self.table.terminal());
        for note in &self.notes {
            out += &format!("· {note}\n");
        }
        out
    }

    pub fn markdown(&self, setting: &Setting) -> String {
        let Self {
            slug,
            title,
            command,
            ..
        } = self;
        let level = if self.part_of.is_some() { "##" } else { "#" };
        let mut out = format!(
            "{level} {title}\n\nPrinted by `{command}` on {date}. Machine: {machine}. Servers: {servers}.\n\n",
            date = date::today(),
            machine = setting.machine.describe(),
            servers = setting.servers(),
        );
        for paragraph in &self.method {
            out += &format!("{paragraph}\n\n");
        }
        if self.chart.is_some() {
            out += &format!("![{title}]({slug}.svg)\n\n");
        }
        out += &self.table.markdown();
        if !self.notes.is_empty() {
            out += "\n";
        }
        for note in &self.notes {
            out += &format!("- {note}\n");
        }
        out
    }

    /// Writes the page and its chart, and replaces this section's entry in `results.json`.
    pub fn write(&self, dir: &Path, setting: &Setting) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let text = self.markdown(setting);
        match self.part_of {
            None => write(&dir.join(format!("{}.md", self.slug)), &text)?,
            Some(page) => {
                let path = dir.join(page);
                let known = fs::read_to_string(&path).unwrap_or_default();
                write(&path, &with_part(&known, self.slug, &text))?;
            }
        }
        if let Some(chart) = &self.chart {
            write(&dir.join(format!("{}.svg", self.slug)), &chart.svg()?)?;
        }
        let path = dir.join("results.json");
        let known = fs::read_to_string(&path).ok();
        let mut all: Map<String, Value> = known
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        all.insert(self.slug.to_owned(), self.json(setting));
        write(&path, &(serde_json::to_string_pretty(&all)? + "\n"))
    }

    pub fn json(&self, setting: &Setting) -> Value {
        json!({
            "date": date::today(),
            "machine": setting.machine.describe(),
            "servers": setting.versions,
            "command": self.command,
            "results": self.data,
        })
    }
}

/// `page` with what is between the marks of part `slug` replaced, or with the part at its end.
fn with_part(page: &str, slug: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- {slug} -->\n"),
        format!("<!-- end of {slug} -->\n"),
    );
    let part = format!("{begin}{text}{end}");
    let place = page
        .find(&begin)
        .and_then(|from| Some((from, from + page[from..].find(&end)? + end.len())));
    match place {
        Some((from, to)) => format!("{}{part}{}", &page[..from], &page[to..]),
        None if page.is_empty() => part,
        None => format!("{page}\n{part}"),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(slug: &'static str, figure: u32) -> Report {
        let mut table = Table::new(1, "what | figure");
        table.row(vec!["x".into(), figure.to_string()]);
        Report {
            slug,
            part_of: None,
            title: "A title".into(),
            command: "cargo xtask bench-peers".into(),
            method: vec!["Measured so.".into()],
            table,
            chart: None,
            notes: vec!["A note.".into()],
            data: json!([figure]),
        }
    }

    #[test]
    fn parts_of_a_page_replace_only_themselves() {
        let page = with_part(&with_part("Words.\n", "a", "one\n"), "b", "two\n");
        let page = with_part(&page, "a", "three\n") + "More words.\n";
        let a = "<!-- a -->\nthree\n<!-- end of a -->\n";
        let b = "<!-- b -->\ntwo\n<!-- end of b -->\n";
        assert_eq!(page, format!("Words.\n\n{a}\n{b}More words.\n"));
    }

    #[test]
    fn sections_replace_only_their_own_entry() {
        let dir = tempfile::tempdir().unwrap();
        let versions = BTreeMap::from([("redis".to_owned(), "7.0.15".to_owned())]);
        let setting = Setting {
            machine: Machine::read(),
            versions,
        };
        for (slug, figure) in [("one", 1), ("two", 2), ("one", 3)] {
            report(slug, figure).write(dir.path(), &setting).unwrap();
        }
        let text = fs::read_to_string(dir.path().join("results.json")).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["one"]["results"], json!([3]));
        assert_eq!(all["two"]["results"], json!([2]));
        let page = fs::read_to_string(dir.path().join("one.md")).unwrap();
        for part in [
            "# A title",
            "`cargo xtask bench-peers`",
            "redis 7.0.15",
            "| x ",
            "- A note.",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
