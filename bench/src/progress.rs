//! Progress on the terminal; plain lines where there is none.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over a known number of steps.
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
}

impl Progress {
    pub fn new(title: &str, steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template(
            "{prefix:.bold} {bar:28.cyan/dim} {percent:>3}% {elapsed:>4} {wide_msg:.dim}",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(title.to_owned());
        bar.tick();
        Self {
            bar,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// What is going on now.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    pub fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    pub fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// A line that stays above the bar.
    pub fn say(&self, line: &str) {
        if self.terminal {
            self.bar.println(line);
        } else {
            eprintln!("{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
