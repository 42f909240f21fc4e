//! What a SET of a strict key costs on a node that has a lattice keyspace: nearly nothing more.
//!
//! The connection and the keys belong to one worker, so that no message to another one is counted.
//! A keyspace whose prefix begins with another byte than the keys is told from theirs by one
//! look; with the same first byte, by the search for the longest prefix.

use anyhow::{Context, Result, bail};

use super::{Counted, KEYS, Options, Runs, counted};
use crate::loadgen::keys::Keys;
use crate::loadgen::load::Load;
use crate::loadgen::template::{Command, Shape};
use crate::measure::preload;
use crate::progress::Progress;
use crate::sections::cross::{connections_by_worker, owned_keys};
use crate::servers::{Server, ServerSpec};
use crate::table::Table;

/// Keys begin with `k`.
pub(super) const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 64,
};
/// The prefixes of lattice keyspaces that are compared, and how they differ from the keys.
const KEYSPACES: [(&str, &str); 2] = [
    ("another first byte", "cart:"),
    ("the same first byte", "kart:"),
];
const WORKERS: [usize; 2] = [1, 2];
const PIPELINES: [usize; 2] = [16, 1];

/// Runs per row.
pub(super) const ROWS: u64 = (WORKERS.len() * PIPELINES.len()) as u64;
pub(super) const PER_ROW: u64 = 1 + KEYSPACES.len() as u64;

/// Instructions per SET, without and with each of the keyspaces.
pub(super) fn table(options: &Options, spec: &ServerSpec, progress: &Progress) -> Result<Table> {
    let mut table = Table::new(
        1,
        "workers, pipeline | none | another first byte | change | the same first byte | change",
    );
    for workers in WORKERS {
        for pipeline in PIPELINES {
            let name = format!("{workers}, {pipeline}");
            let spec = spec.with_workers(workers);
            let runs = Runs {
                options,
                pipeline,
                progress,
            };
            let none = counted(&runs, &format!("SET, {name}"), |operations| {
                run(&spec, None, (pipeline, operations))
            })?;
            let mut cells = vec![name.clone(), format!("{none:.0}")];
            for (how, prefix) in KEYSPACES {
                let count = counted(&runs, &format!("SET, {name}, {how}"), |operations| {
                    run(&spec, Some(prefix), (pipeline, operations))
                })?;
                let change = (count / none - 1.0) * 100.0;
                cells.extend([format!("{count:.0}"), format!("{change:+.1} %")]);
            }
            table.row(cells);
        }
    }
    Ok(table)
}

/// What a run with this many commands takes in total.
fn run(
    spec: &ServerSpec,
    prefix: Option<&str>,
    (pipeline, operations): (usize, u64),
) -> Result<u64> {
    let server = Server::start(spec)?;
    preload(&server, Command::Set, SHAPE, 0..KEYS)?;
    if let Some(prefix) = prefix {
        let create = [
            "KEYSPACE", "CREATE", "beside", "PREFIX", prefix, "REGIME", "lattice",
        ];
        let reply = server.client()?.call(&create)?.text()?;
        if reply != "OK" {
            bail!("KEYSPACE CREATE: {reply}");
        }
    }
    let (load, keys) = match spec.workers {
        1 => (Load::connect(server.addr, 1)?, Keys::Uniform(KEYS)),
        _ => of_first(&server)?,
    };
    Counted {
        command: Command::Set,
        shape: SHAPE,
        keys,
        pipeline,
        operations,
    }
    .run(server, load)
}

/// A connection of the first worker, and its keys.
fn of_first(server: &Server) -> Result<(Load, Keys)> {
    let owned = owned_keys(server, SHAPE, KEYS)?.into_iter().next();
    let streams = connections_by_worker(server, 1)?.into_iter().next();
    let load = Load::adopt(streams.context("no connection")?)?;
    Ok((load, Keys::Listed(owned.context("no keys")?)))
}
