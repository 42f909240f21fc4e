//! A node that has drained, is silent for a while and goes on.

use crate::clusters::{ADMIN, Running, free_ports, signal};
use crate::program::{bulk, eventually, http_get, program, run, simple, stdout};

#[test]
fn a_drained_node_that_was_silent_is_a_member_without_slots_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let table = "[[keyspace]]\nname = \"likes\"\nprefix = \"likes:\"\nregime = \"lattice\"\n";
    std::fs::write(dir.path().join("rufous.toml"), table).expect("written");
    let mut running = Running::start_in(dir, free_ports(), 3);
    running.says("ready:");
    let call = |node, command: &str| running.client(node).call(command);
    assert_eq!(call(3, "SET greeting hello"), simple("OK"));
    let drained = run(&mut program(&["cluster", "drain", &running.at(3)]));
    assert!(drained.status.success(), "{drained:?}");
    assert_eq!(call(3, "GET greeting"), bulk("hello"));
    // What `cluster status` says of the node at another one.
    let state = || {
        let text = stdout(&running.status(1, &[]));
        let line = text.lines().find(|line| line.contains(&running.at(3)));
        line.map(|line| {
            line.split_whitespace()
                .take(5)
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    let first = state().expect("a member");
    assert!(first.ends_with("drains 0 0"), "{first}");

    let pid = running.pid(3);
    signal("STOP", &pid);
    eventually("it is removed", || state().is_none().then_some(()));
    signal("CONT", &pid);
    // Under another number, and the others have yet to hear it.
    let again = eventually("it joins again", || {
        state().filter(|now| now.ends_with("drains 0 0") && *now != first)
    });
    let (node, admin) = (running.at(3), running.port + ADMIN + 2);
    eventually("it is ready", || {
        let (code, _) = http_get(admin, "/readyz").expect("an answer");
        (code == 200).then_some(())
    });
    // It forwards as before, and serves lattice keys.
    assert_eq!(call(3, "GET greeting"), bulk("hello"));
    assert_eq!(call(3, "SET greeting again"), simple("OK"));
    assert_eq!(call(1, "GET greeting"), bulk("again"));
    eventually("lattice keys are served", || {
        (call(3, "SET likes:1 many") == simple("OK")).then_some(())
    });
    eventually("others have them", || {
        (call(1, "GET likes:1") == bulk("many")).then_some(())
    });
    assert_eq!(state().as_ref(), Some(&again), "it has no slots");

    // The drain can be withdrawn.
    let cancelled = run(&mut program(&["cluster", "drain", &node, "--cancel"]));
    assert!(cancelled.status.success(), "{cancelled:?}");
    eventually("it has slots", || {
        let state = state().expect("a member");
        (state.contains(" alive ") && !state.ends_with(" 0 0")).then_some(())
    });
    running.is_whole_with(1, 3);
}
