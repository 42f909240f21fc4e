//! LOLWUT: a picture, and the version.

use crate::command::SessionCommand;
use crate::front::session::Session;
use crate::identity;
use rufous_base::Args;
use rufous_base::rng::Rng;
use rufous_command::options::{self, is};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

const WIDTH: usize = 48;
const HEIGHT: usize = 9;

pub static LOLWUT: SessionCommand = SessionCommand {
    spec: Spec {
        name: "lolwut",
        summary: "Draws a random forest, and returns the version.",
        since: "5.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::READONLY.or(Flags::FAST).or(Flags::LOCAL),
        keys: Keys::None,
        syntax: "[VERSION version]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    if args.len() >= 3 && is(args.get(1), "VERSION") {
        options::integer(args.get(2))?;
    }
    let mut text = forest(session.now.unix_us);
    text.push_str(&format!(
        "\nRufous ver. {}, to clients Redis ver. {}\n",
        identity::VERSION,
        identity::REDIS_VERSION
    ));
    reply.verbatim(*b"txt", &text);
    Ok(())
}

/// Trees of random height side by side; nearer ones stand in front.
fn forest(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut rows = vec![[' '; WIDTH]; HEIGHT];
    for _ in 0..14 {
        let height = 2 + rng.below(HEIGHT as u64 - 3) as usize;
        let middle = rng.below(WIDTH as u64) as usize;
        for level in 0..height {
            let row = &mut rows[HEIGHT - 2 - level];
            let reach = (height - level).div_ceil(2);
            for (column, place) in row.iter_mut().enumerate() {
                match column.abs_diff(middle) {
                    0 => *place = if level + 1 == height { '^' } else { '|' },
                    away if away == reach => *place = if column < middle { '/' } else { '\\' },
                    away if away < reach => *place = if rng.below(5) == 0 { '*' } else { ' ' },
                    _ => {}
                }
            }
        }
    }
    rows[HEIGHT - 1] = ['~'; WIDTH];
    rows.into_iter()
        .flat_map(|row| row.into_iter().chain(['\n']))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;

    #[test]
    fn a_picture_of_fixed_size_with_the_version() {
        let mut rig = Rig::new(1);
        let reply = rig.run("LOLWUT VERSION 5 1");
        assert!(
            reply.contains(&format!("Rufous ver. {}, ", identity::VERSION))
                && reply.contains("Redis ver. "),
            "{reply}"
        );
        rig.check(
            "LOLWUT VERSION x",
            "-ERR value is not an integer or out of range\r\n",
        );
        let (one, other) = (forest(1), forest(2));
        assert_ne!(one, other);
        assert!(one.lines().all(|line| line.len() == WIDTH) && one.lines().count() == HEIGHT);
    }
}
