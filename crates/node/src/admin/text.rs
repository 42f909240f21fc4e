//! The Prometheus text format: families of samples, each with what it means
//! and of which kind it is.

use std::fmt::{Display, Write};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Text under construction.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    #[cfg(test)]
    pub(super) families: Vec<Declared>,
}

/// A family as the reference lists it.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) labels: &'static [&'static str],
    pub(super) help: String,
}

/// One family, to be filled before the next one is begun.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
    labels: &'static [&'static str],
}

/// Counters are called `_total`; all other metrics are gauges.
pub(super) fn kind(name: &str) -> &'static str {
    match name.strip_suffix("_total") {
        Some(_) => "counter",
        None => "gauge",
    }
}

impl Exposition {
    /// Begins a family. Each of its samples has a value for each label.
    pub(super) fn family<'a>(
        &'a mut self,
        name: &'a str,
        labels: &'static [&'static str],
        help: &str,
    ) -> Family<'a> {
        #[cfg(test)]
        self.families.push(Declared {
            name: name.to_owned(),
            labels,
            help: help.to_owned(),
        });
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let kind = kind(name);
        self.text
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family {
            text: &mut self.text,
            name,
            labels,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample without labels.
    pub(super) fn value(&mut self, value: impl Display) {
        self.sample(&[], value);
    }

    /// Adds a sample with the values of the family's labels, in their order.
    pub(super) fn sample(&mut self, values: &[&dyn Display], value: impl Display) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        self.text.push_str(self.name);
        for (at, (label, of)) in self.labels.iter().zip(values).enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            let of = of
                .to_string()
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{label}=\"{of}\"");
        }
        let end = if self.labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format() {
        let mut out = Exposition::default();
        out.family("a_total", &[], "Of a\\b\nand c.").value(7);
        let mut family = out.family("b", &["x", "y"], "Of b.");
        family.sample(&[&"1\"\\\n", &2], 0.5);
        family.sample(&[&"", &3], 1);
        assert_eq!(
            out.finish(),
            "# HELP a_total Of a\\\\b\\nand c.\n# TYPE a_total counter\na_total 7\n\
             # HELP b Of b.\n# TYPE b gauge\nb{x=\"1\\\"\\\\\\n\",y=\"2\"} 0.5\nb{x=\"\",y=\"3\"} 1\n"
        );
    }
}
