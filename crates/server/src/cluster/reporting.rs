//! What a worker reports of itself at every tick: to the other threads of its node, and to the node that
//! plans.

use super::gossip::why_unserved;
use super::links::Links;
use super::state::Cluster;
use crate::config::{AppendFsync, Config};
use rufous_base::Now;
use rufous_cluster::reports::AboutCopies;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::worker::Past;
use rufous_wire::version::LETTERS;

/// Tells what has changed.
pub(super) fn tell(
    now: Now,
    links: &mut Links,
    kernel: &mut Worker<DataCommands>,
    cluster: &Cluster,
    config: &Config,
) {
    let ails = kernel.log_ails(now);
    let health = &links.common().health;
    health.turns(kernel.id().0);
    health.ails(kernel.id().0, ails);
    let unserved = kernel.lattice_unserved();
    health.waits(kernel.id().0, unserved.map(|of| why_unserved(&of)));
    let serves = kernel.serves_lattice();
    health.serves(kernel.id().0, serves);
    if !serves {
        kernel.hear_of_serving(&health.serving());
    }
    let copies = AboutCopies {
        incarnation: links.common().local.incarnation,
        logs: config.appendonly,
        accepts: cluster.settings.accept_loss,
        may_lack: config.appendfsync != AppendFsync::Always && cluster.past == Past::Unknown,
        keeps_all: cluster.past == Past::Whole,
    };
    let reports = &links.common().reports;
    let (epoch, held) = kernel.held();
    let is_news = reports.tell_held(kernel.id().0, copies, (epoch, &held));
    if is_news {
        cluster.reported.notify_one();
    }
    if !links.damage.is_due(now) {
        return;
    }
    let worker = kernel.id();
    let unserved = kernel.unserved_slots(now);
    let health = &links.common().health;
    health.unserved(worker.0, now.mono_us, unserved);
    kernel.on_ailing(health.ailing());
    kernel.on_without(links.earlier(LETTERS).collect());
    let reports = &links.common().reports;
    reports.tell(worker.0, &kernel.learned());
    links.damage.on_look(worker, &kernel.broken_slots());
}
