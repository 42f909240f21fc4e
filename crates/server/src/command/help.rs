//! HELP of a container, made from the declarations of its subcommands.

use crate::front::session::Session;
use rufous_command::{Failure, Reply};

/// Lists the subcommands of `container` in the form that Redis uses.
pub(crate) fn list_subcommands(
    session: &Session<'_>,
    container: &str,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let name = container.to_uppercase();
    let mut lines = vec![format!(
        "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    )];
    let mut subcommands: Vec<_> = session
        .local
        .table()
        .specs()
        .filter_map(|(_, spec)| Some((spec.name.strip_prefix(container)?.strip_prefix('|')?, spec)))
        .collect();
    // HELP itself comes last.
    subcommands.sort_by_key(|(name, _)| (*name == "help", *name));
    for (name, spec) in subcommands {
        lines.push(
            format!("{} {}", name.to_uppercase(), spec.syntax)
                .trim_end()
                .to_owned(),
        );
        lines.push(format!("    {}", spec.summary));
    }
    reply.array(lines.len());
    for line in lines {
        reply.simple(&line);
    }
    Ok(())
}
