//! The bounds of random histories.

use super::world::Bounds;

/// Bounds with a name.
type Named = (&'static str, Bounds);

/// All, with their names.
pub fn all() -> Vec<Named> {
    let groups = [
        large_faults(),
        small_faults(),
        accesses(),
        typed_keys(),
        beside(),
        requests(),
        surveys(),
    ];
    groups.concat()
}

/// Without faults.
pub fn calm() -> Bounds {
    Bounds {
        slots: 3,
        keys: 4,
        origins: 2,
        txns: 8,
        heads: 0,
        links: 0,
        ends: 0,
        stops: 0,
        losses: 0,
        always: true,
        typed: false,
        access: false,
        resends: 0,
        misses: 0,
        unnoticed: false,
        busy: 0,
        requests: 0,
        apart: false,
        refusals: false,
        beside: false,
        orders: false,
        wide: false,
    }
}

fn of(name: &'static str, change: fn(&mut Bounds)) -> Named {
    let mut bounds = calm();
    change(&mut bounds);
    (name, bounds)
}

/// Heads, links and origins end, all stop, and slots lose the ends of their logs.
fn large_faults() -> Vec<Named> {
    vec![
        of("without faults", |_| ()),
        of("contended keys", |of| (of.keys, of.txns) = (3, 9)),
        of("heads and links", |of| (of.heads, of.links) = (3, 3)),
        of("origins that end", |of| {
            (of.heads, of.links, of.ends) = (2, 2, 2);
        }),
        of("stops of all, synced logs", |of| {
            (of.heads, of.stops) = (1, 2);
        }),
        of("stops of all that lose the ends of logs", |of| {
            (of.heads, of.links, of.ends) = (1, 1, 1);
            (of.stops, of.always) = (2, false);
        }),
        of("slots that lose the ends of their logs", |of| {
            (of.heads, of.links) = (1, 1);
            (of.losses, of.always) = (2, false);
        }),
    ]
}

/// What nothing notices, and keys that others hold.
fn small_faults() -> Vec<Named> {
    vec![
        of("sent again although nothing was lost", |of| {
            (of.resends, of.heads) = (20, 1);
        }),
        of("single messages lost", |of| {
            (of.misses, of.resends) = (6, 10);
        }),
        of("single messages lost, heads, links, and origins", |of| {
            (of.misses, of.resends) = (5, 10);
            (of.heads, of.links, of.ends) = (2, 1, 1);
        }),
        of("heads and origins that change unnoticed", |of| {
            (of.unnoticed, of.heads, of.ends) = (true, 4, 1);
            of.resends = 12;
        }),
        of("changes unnoticed, and single messages lost", |of| {
            (of.unnoticed, of.heads, of.ends) = (true, 3, 2);
            (of.misses, of.resends, of.busy) = (4, 12, 4);
        }),
        of("single messages lost, stops of all, synced logs", |of| {
            (of.misses, of.resends, of.stops) = (5, 10, 2);
        }),
        of("single messages lost, and the ends of logs", |of| {
            (of.misses, of.resends, of.heads) = (5, 10, 1);
            (of.losses, of.always) = (2, false);
        }),
        of(
            "single messages lost, stops that lose the ends of logs",
            |of| {
                (of.misses, of.resends, of.ends) = (5, 10, 1);
                (of.stops, of.always) = (2, false);
            },
        ),
        of("keys that others hold, and refusals", |of| {
            (of.busy, of.refusals) = (12, true);
            (of.heads, of.links) = (2, 1);
        }),
    ]
}

/// Keys that are read or written.
fn accesses() -> Vec<Named> {
    vec![
        of("reads and writes", |of| {
            (of.access, of.keys, of.txns) = (true, 3, 10);
            (of.heads, of.links) = (3, 2);
        }),
        of("reads and writes, single messages lost", |of| {
            (of.access, of.misses, of.resends) = (true, 5, 10);
            (of.busy, of.refusals) = (6, true);
            (of.heads, of.ends) = (2, 1);
        }),
        of("reads and writes, changes unnoticed", |of| {
            (of.access, of.keys, of.unnoticed) = (true, 3, true);
            (of.heads, of.ends) = (4, 1);
            (of.misses, of.resends, of.refusals) = (3, 12, true);
        }),
        of("reads and writes, stops of all, synced logs", |of| {
            (of.access, of.heads, of.stops) = (true, 1, 2);
            (of.misses, of.resends) = (3, 6);
        }),
        of("reads and writes, and the ends of logs", |of| {
            (of.access, of.heads, of.links) = (true, 1, 1);
            (of.misses, of.resends, of.busy) = (3, 6, 4);
            (of.losses, of.always) = (2, false);
        }),
    ]
}

/// Commands on keys of types.
fn typed_keys() -> Vec<Named> {
    vec![
        of("typed keys", |of| of.typed = true),
        of("typed keys, few", |of| {
            (of.typed, of.keys, of.txns) = (true, 3, 9);
        }),
        of("typed keys, heads and links", |of| {
            (of.typed, of.heads, of.links) = (true, 3, 3);
        }),
        of("typed keys, single messages lost, refusals", |of| {
            (of.typed, of.heads, of.refusals) = (true, 2, true);
            (of.misses, of.resends, of.busy) = (5, 10, 6);
        }),
        of("typed keys, stops of all, synced logs", |of| {
            (of.typed, of.heads, of.stops) = (true, 1, 2);
        }),
        of("typed keys, slots that lose the ends of their logs", |of| {
            (of.typed, of.heads, of.links) = (true, 1, 1);
            (of.losses, of.always) = (2, false);
        }),
    ]
}

/// Slots that lose the ends of their logs ask the others.
fn surveys() -> Vec<Named> {
    let lossy = |name, change: fn(&mut Bounds)| {
        let (name, mut bounds) = of(name, change);
        bounds.always = false;
        (name, bounds)
    };
    vec![
        lossy("surveys, slots that lose the ends of their logs", |of| {
            (of.heads, of.links, of.losses) = (1, 1, 3);
        }),
        lossy("surveys, losses one after the other", |of| {
            (of.misses, of.resends, of.losses, of.slots) = (3, 6, 4, 4);
        }),
        lossy("surveys, beside, losses", |of| {
            (of.beside, of.slots, of.losses, of.heads) = (true, 4, 3, 2);
            (of.misses, of.resends) = (3, 6);
        }),
        lossy("surveys, transactions over all slots", |of| {
            (of.wide, of.slots, of.keys, of.txns) = (true, 4, 4, 3);
            (of.heads, of.losses) = (1, 2);
            (of.misses, of.resends) = (2, 6);
        }),
        lossy("surveys, typed keys", |of| {
            (of.typed, of.heads, of.links, of.losses) = (true, 1, 1, 3);
        }),
    ]
}

/// Slots that follow one another may be at one worker, where steps are taken ahead of messages.
fn beside() -> Vec<Named> {
    let near = |name, change: fn(&mut Bounds)| {
        let (name, mut bounds) = of(name, change);
        (bounds.beside, bounds.slots) = (true, 4);
        (name, bounds)
    };
    vec![
        near("beside, without faults", |_| ()),
        near("beside, contended keys", |of| (of.keys, of.txns) = (4, 10)),
        near("beside, heads and links", |of| {
            (of.heads, of.links) = (4, 2);
        }),
        near("beside, origins that end", |of| {
            (of.heads, of.links, of.ends) = (3, 2, 2);
        }),
        near("beside, refusals and keys that others hold", |of| {
            (of.heads, of.ends, of.refusals, of.busy) = (3, 1, true, 6);
        }),
        near("beside, single messages lost", |of| {
            (of.misses, of.resends) = (6, 10);
            (of.heads, of.links, of.ends) = (3, 1, 1);
        }),
        near("beside, changes unnoticed", |of| {
            (of.unnoticed, of.heads, of.ends) = (true, 4, 2);
            (of.misses, of.resends, of.refusals) = (4, 12, true);
        }),
        near("beside, stops of all, synced logs", |of| {
            (of.heads, of.stops, of.misses, of.resends) = (2, 2, 3, 6);
        }),
        near("beside, stops that lose the ends of logs", |of| {
            (of.misses, of.resends, of.heads) = (3, 6, 1);
            (of.stops, of.always) = (2, false);
        }),
        near("beside, slots that lose the ends of their logs", |of| {
            (of.misses, of.resends, of.heads) = (3, 6, 2);
            (of.losses, of.always) = (2, false);
        }),
        near("beside, reads and writes", |of| {
            (of.access, of.keys, of.txns) = (true, 4, 10);
            (of.heads, of.links, of.misses, of.resends) = (4, 1, 4, 10);
        }),
        near("beside, reads and writes, changes unnoticed", |of| {
            (of.access, of.keys, of.unnoticed) = (true, 4, true);
            (of.heads, of.ends, of.busy) = (4, 1, 4);
            (of.misses, of.resends, of.refusals) = (3, 12, true);
        }),
        near("beside, reads and writes, and the ends of logs", |of| {
            (of.access, of.heads, of.links) = (true, 2, 1);
            (of.misses, of.resends) = (3, 6);
            (of.losses, of.always) = (2, false);
        }),
        near("beside, two orders", |of| {
            (of.orders, of.heads, of.links, of.ends) = (true, 2, 1, 1);
        }),
        near("beside, two orders, reads and writes", |of| {
            (of.orders, of.access, of.keys, of.txns) = (true, true, 4, 10);
            (of.heads, of.misses, of.resends, of.busy) = (2, 4, 10, 4);
        }),
        near("beside, two orders, and the ends of logs", |of| {
            (of.orders, of.access, of.heads, of.links) = (true, true, 2, 1);
            (of.losses, of.always) = (2, false);
        }),
        near("beside, typed keys", |of| {
            (of.typed, of.heads, of.refusals) = (true, 3, true);
            (of.misses, of.resends, of.busy) = (5, 10, 6);
        }),
    ]
}

/// Requests wait for keys that transactions have, and have them before later transactions. Transactions that depend on one
/// another are kept apart.
fn requests() -> Vec<Named> {
    let near = |name, change: fn(&mut Bounds)| {
        let (name, mut bounds) = of(name, change);
        (bounds.beside, bounds.slots, bounds.requests) = (true, 4, 16);
        bounds.apart = true;
        (name, bounds)
    };
    vec![
        near("requests", |of| (of.keys, of.txns) = (4, 12)),
        near("requests, heads and links", |of| {
            (of.keys, of.txns) = (4, 10);
            (of.heads, of.links) = (3, 1);
        }),
        near("requests, reads and writes, single messages lost", |of| {
            (of.access, of.heads, of.ends) = (true, 3, 1);
            (of.misses, of.resends, of.busy) = (5, 10, 6);
        }),
        near("requests, two orders", |of| {
            (of.orders, of.keys, of.txns) = (true, 4, 12);
        }),
        near("requests, two orders, single messages lost", |of| {
            (of.orders, of.keys, of.txns) = (true, 5, 12);
            (of.heads, of.misses, of.resends, of.busy) = (1, 2, 6, 4);
        }),
        near("requests, the ends of logs", |of| {
            (of.heads, of.links) = (2, 1);
            (of.losses, of.always) = (2, false);
        }),
    ]
}

/// As [`requests`], but transactions that depend on one another are ordered: requests see one at a key, and then begin one
/// that comes before it at another. The search has to notice that.
pub fn ordered_requests() -> Bounds {
    let mut bounds = calm();
    (bounds.slots, bounds.keys, bounds.txns, bounds.requests) = (4, 4, 12, 16);
    bounds
}
