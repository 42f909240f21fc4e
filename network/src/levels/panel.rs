//! A panel for each level: what it promises, what its clients did and saw, and what `eventual` showed.

use super::level::{Kind, Level};
use super::record::Counts;
use super::scene::{EVENTUAL, Verdict};

/// An example has no more characters.
const SHOWN: usize = 240;

/// See the module's description.
pub struct Panel {
    pub level: &'static Level,
    pub counts: Counts,
    pub reads: usize,
    pub writes: usize,
    /// What its history has that the level forbids, and replies that make no sense.
    pub verdict: Verdict,
    pub odd: Vec<String>,
    /// Of the same work in the keyspace `eventual`: how much, and what this level forbids of it.
    pub eventual: (u64, Verdict),
}

impl Panel {
    pub fn is_kept(&self) -> bool {
        self.verdict.count() == 0 && self.odd.is_empty()
    }

    pub fn print(&self, no: usize) {
        let Panel { level, counts, .. } = self;
        let rule = "─".repeat(76_usize.saturating_sub(level.name.len()));
        println!("\n── {no}. {} {rule}", level.name);
        println!("  promises   {}", level.promises);
        println!("  allows     {}", level.allows);
        println!("  clients    {}", self.work());
        if counts.resumed > 0 {
            println!(
                "             {} moves with a token, which took {} ms at most; BEHIND: {} × RESUME, {} × TOKEN; {} sessions ended",
                counts.resumed,
                counts.longest.as_millis(),
                counts.behind,
                counts.late_tokens,
                counts.ended
            );
        }
        if !counts.errors.is_empty() {
            let of = |(code, count): (&String, &u64)| format!("{count} × {code}");
            let all: Vec<String> = counts.errors.iter().map(of).collect();
            println!("             errors: {}", all.join(", "));
        }
        let broken = self.verdict.count() + self.odd.len() as u64;
        match broken {
            0 => println!("  saw        no anomaly"),
            _ => println!("  saw        WRONG, anomalies: {broken}"),
        }
        print_verdict(&self.verdict, "WRONG ");
        for odd in self.odd.iter().take(3) {
            println!("             WRONG {}", cut(odd));
        }
        let (operations, eventual) = &self.eventual;
        println!(
            "  eventual   anomalies: {} in {operations} operations{}",
            eventual.count(),
            if self.level.name == EVENTUAL {
                ", by the rules of the level causal"
            } else {
                ""
            }
        );
        print_verdict(eventual, "");
    }

    fn work(&self) -> String {
        let counts = &self.counts;
        let what = match self.level.kind {
            Kind::Sessions(_) => {
                format!("{} writes, {} reads", self.writes, self.reads)
            }
            Kind::Transactions(_) => format!(
                "{} transactions, {} of them not committed",
                self.reads + self.writes,
                self.reads
            ),
        };
        format!(
            "{what}, {} moves to other connections, {} of them to other nodes",
            counts.moves, counts.crossings
        )
    }
}

fn print_verdict(verdict: &Verdict, word: &str) {
    for (kind, (count, example)) in &verdict.wrong {
        println!("             {word}{count} × {kind}");
        println!("               {}", cut(example));
    }
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        return format!("{short}…");
    }
    short
}
