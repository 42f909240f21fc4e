//! The Prometheus text format: families of samples, each with what it means
//! and of which kind it is.

use std::fmt::{Display, Write};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Text under construction.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// One family, to be filled before the next one is begun.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    /// Begins a family of figures that only grow; `name` ends in `_total`.
    pub(super) fn counter<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        debug_assert!(name.ends_with("_total"), "{name}");
        self.family(name, "counter", help)
    }

    /// Begins a family of figures that go up and down.
    pub(super) fn gauge<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        debug_assert!(!name.ends_with("_total"), "{name}");
        self.family(name, "gauge", help)
    }

    fn family<'a>(&'a mut self, name: &'a str, kind: &str, help: &str) -> Family<'a> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.text
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family {
            text: &mut self.text,
            name,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample without labels.
    pub(super) fn value(&mut self, value: impl Display) -> &mut Self {
        self.sample(&[], value)
    }

    pub(super) fn sample(
        &mut self,
        labels: &[(&str, &dyn Display)],
        value: impl Display,
    ) -> &mut Self {
        self.text.push_str(self.name);
        for (at, (label, of)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            let of = of
                .to_string()
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{label}=\"{of}\"");
        }
        let _ = writeln!(
            self.text,
            "{} {value}",
            if labels.is_empty() { "" } else { "}" }
        );
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format() {
        let mut out = Exposition::default();
        out.counter("a_total", "Of a\\b\nand c.").value(7);
        out.gauge("b", "Of b.")
            .sample(&[("x", &"1\"\\\n"), ("y", &2)], 0.5)
            .sample(&[("x", &"")], 1);
        assert_eq!(
            out.finish(),
            "# HELP a_total Of a\\\\b\\nand c.\n# TYPE a_total counter\na_total 7\n\
             # HELP b Of b.\n# TYPE b gauge\nb{x=\"1\\\"\\\\\\n\",y=\"2\"} 0.5\nb{x=\"\"} 1\n"
        );
    }
}
