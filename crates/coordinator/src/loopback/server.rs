//! The coordinator process to which all nodes are connected.
//!
//! A [`Meeting`] decides membership and mappings; here each node has a seat in it, which outlives
//! its connection by the lease.

use super::frames::{self, Answer, Asked, MAX_ASKED, MAX_FIRST, Told};
use super::proof::{self, Code, Nonces, Role, Secret};
use super::{LEASE, MAX_NODES};
use crate::meeting::{Attendee, Meeting};
use crate::{Coordinator, Error, Member, NodeId, View};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How often to look for nodes whose lease has expired.
const LOOK: Duration = Duration::from_millis(100);
/// Limit on frames of a node that wait to be answered.
const WAITING: usize = 16;
/// Delay after a failed accept, for lack of file descriptors.
const REST: Duration = Duration::from_millis(200);

const NO_SECRET: &str =
    "the coordinator has the secret of the cluster, and the node has none: set cluster-secret-file";
const NO_SECRET_HERE: &str =
    "the node has a secret, and the coordinator has none: start it again with that of the cluster";
const OTHER_SECRET: &str = "the node has another secret than the coordinator: set cluster-secret-file to that of the cluster";

/// While it exists, nodes can agree on mappings.
pub struct Server {
    address: SocketAddr,
    seats: Arc<Seats>,
    tasks: [JoinHandle<()>; 2],
}

impl Server {
    /// Serves one cluster at an address of the loopback interface: the nodes that know the secret, if there
    /// is one. The mapping is kept in the folder, if there is one.
    pub async fn start(
        at: SocketAddr,
        cluster: &str,
        secret: Option<Secret>,
        folder: Option<&Path>,
    ) -> Result<Self, Error> {
        if !at.ip().is_loopback() {
            let what = format!(
                "{at}: the development coordinator serves this machine only; use etcd for several machines"
            );
            return Err(Error::Settings(what));
        }
        let meeting = match folder {
            Some(folder) => Meeting::kept_in(folder)?,
            None => Meeting::default(),
        };
        let failed = |error: io::Error| Error::Settings(format!("cannot listen on {at}: {error}"));
        let listener = TcpListener::bind(at).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let seats = Arc::new(Seats {
            cluster: cluster.to_owned(),
            secret,
            meeting,
            taken: Mutex::default(),
        });
        let tasks = [
            tokio::spawn(accept(listener, Arc::clone(&seats))),
            tokio::spawn(expire(Arc::clone(&seats))),
        ];
        Ok(Self {
            address,
            seats,
            tasks,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nodes that count as alive.
    pub fn alive(&self) -> usize {
        self.seats.lock().by_lease.len()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.seats.meeting, self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        // Connections end when their seats are removed.
        self.seats.lock().by_lease.clear();
    }
}

struct Seats {
    cluster: String,
    secret: Option<Secret>,
    meeting: Meeting,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    last: u64,
    by_lease: BTreeMap<u64, Seat>,
}

/// A node's seat, connected or not.
struct Seat {
    attendee: Arc<Attendee>,
    me: NodeId,
    incarnation: u64,
    heard: Instant,
    /// Its last connection: messages of an earlier one are ignored.
    connection: u64,
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node's earlier seat, or a new one.
    fn sit(&self, lease: u64, me: Member) -> Result<(u64, u64), String> {
        let mut taken = self.lock();
        taken.last += 1;
        let connection = taken.last;
        if let Some(seat) = taken.by_lease.get_mut(&lease)
            && (seat.me, seat.incarnation) == (me.id, me.incarnation)
        {
            seat.connection = connection;
            seat.heard = Instant::now();
            return Ok((lease, connection));
        }
        if taken.by_lease.len() >= MAX_NODES {
            return Err(format!(
                "it has {MAX_NODES} nodes already: take etcd for more"
            ));
        }
        let (id, incarnation) = (me.id, me.incarnation);
        let attendee = self.meeting.join(me).map_err(|why| why.to_string())?;
        // A node that was replaced loses its seat, too.
        taken.by_lease.retain(|_, seat| seat.me != id);
        let seat = Seat {
            attendee: Arc::new(attendee),
            me: id,
            incarnation,
            heard: Instant::now(),
            connection,
        };
        taken.by_lease.insert(connection, seat);
        Ok((connection, connection))
    }

    /// The attendee of the seat, if this is still its connection. Renews the lease.
    fn heard(&self, lease: u64, connection: u64) -> Option<Arc<Attendee>> {
        let mut taken = self.lock();
        let seat = taken.by_lease.get_mut(&lease)?;
        (seat.connection == connection).then(|| {
            seat.heard = Instant::now();
            Arc::clone(&seat.attendee)
        })
    }

    fn leave(&self, lease: u64, connection: u64) {
        let mut taken = self.lock();
        let seat = taken.by_lease.get(&lease);
        if seat.is_some_and(|seat| seat.connection == connection) {
            taken.by_lease.remove(&lease);
        }
    }
}

/// Removes the seats of nodes whose lease has expired.
async fn expire(seats: Arc<Seats>) {
    loop {
        sleep(LOOK).await;
        seats
            .lock()
            .by_lease
            .retain(|_, seat| seat.heard.elapsed() < LEASE);
    }
}

async fn accept(listener: TcpListener, seats: Arc<Seats>) {
    let room = Arc::new(Semaphore::new(4 * MAX_NODES));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                sleep(REST).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            continue;
        };
        let seats = Arc::clone(&seats);
        tokio::spawn(async move {
            if let Err(error) = converse(stream, &seats).await {
                tracing::debug!(%error, "a connection to the coordinator has ended");
            }
            drop(place);
        });
    }
}

/// Serves a connection from its first frame on.
async fn converse(stream: TcpStream, seats: &Seats) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut from, mut to) = stream.into_split();
    let hello = match (&seats.secret, next(&mut from).await?) {
        (Some(secret), Asked::Challenge(node)) => {
            prove(secret, node, (&mut from, &mut to)).await?;
            next(&mut from).await?
        }
        (Some(_), Asked::Hello { .. }) => return refuse(&mut to, NO_SECRET).await,
        (None, Asked::Challenge(_)) => return refuse(&mut to, NO_SECRET_HERE).await,
        (_, hello) => hello,
    };
    let Asked::Hello { lease, cluster, me } = hello else {
        return Err(frames::nonsense());
    };
    let sat = match cluster == seats.cluster {
        true => seats.sit(lease, me),
        false => Err(format!(
            "the coordinator is that of cluster '{}', and not of '{cluster}'",
            seats.cluster
        )),
    };
    let (lease, connection) = match sat {
        Ok(sat) => sat,
        Err(why) => return tell(&mut to, &Told::Refused(why)).await,
    };
    tell(&mut to, &Told::Welcome(lease)).await?;
    let Some(attendee) = seats.heard(lease, connection) else {
        return Ok(());
    };
    let view = attendee.view();
    // If it was held here, it would outlive its seat.
    drop(attendee);
    let (asked, questions) = mpsc::channel(WAITING);
    let reading = tokio::spawn(hear(from, asked));
    let seat = Sitting {
        seats,
        lease,
        connection,
    };
    let done = serve(&seat, questions, view, &mut to).await;
    reading.abort();
    done
}

/// A frame before the node is known.
async fn next(from: &mut OwnedReadHalf) -> io::Result<Asked> {
    let frame = timeout(LEASE, frames::read(from, MAX_FIRST)).await??;
    let asked = frame.as_deref().and_then(Asked::decode);
    asked.ok_or_else(frames::nonsense)
}

async fn refuse(to: &mut OwnedWriteHalf, why: &str) -> io::Result<()> {
    tell(to, &Told::Refused(why.to_owned())).await
}

/// Has the node prove that it knows the secret, and proves it to the node.
async fn prove(
    secret: &Secret,
    node: Code,
    (from, to): (&mut OwnedReadHalf, &mut OwnedWriteHalf),
) -> io::Result<()> {
    let coordinator = proof::nonce()?;
    let nonces = Nonces { node, coordinator };
    tell(to, &Told::Challenge(coordinator)).await?;
    let Asked::Proof(code) = next(from).await? else {
        return Err(frames::nonsense());
    };
    if !proof::is_code(secret, Role::Node, &nonces, &code) {
        refuse(to, OTHER_SECRET).await?;
        return Err(io::Error::other("a node with another secret"));
    }
    let code = proof::code(secret, Role::Coordinator, &nonces);
    tell(to, &Told::Proof(code)).await
}

async fn hear(mut from: OwnedReadHalf, asked: mpsc::Sender<Asked>) -> io::Result<()> {
    while let Some(frame) = frames::read(&mut from, MAX_ASKED).await? {
        let frame = Asked::decode(&frame).ok_or_else(frames::nonsense)?;
        if asked.send(frame).await.is_err() {
            break;
        }
    }
    Ok(())
}

struct Sitting<'a> {
    seats: &'a Seats,
    lease: u64,
    connection: u64,
}

/// Answers requests, and sends changes.
async fn serve(
    seat: &Sitting<'_>,
    mut questions: mpsc::Receiver<Asked>,
    mut view: watch::Receiver<View>,
    to: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let mut told = View::default();
    show(&mut view, &mut told, to).await?;
    loop {
        tokio::select! {
            asked = questions.recv() => {
                let Some(asked) = asked else {
                    return Ok(());
                };
                let Some(attendee) = seat.seats.heard(seat.lease, seat.connection) else {
                    return Ok(());
                };
                let told = match asked {
                    Asked::Leave => {
                        seat.seats.leave(seat.lease, seat.connection);
                        return Ok(());
                    }
                    Asked::Hello { .. } | Asked::Challenge(_) | Asked::Proof(_) => {
                        return Err(frames::nonsense());
                    }
                    Asked::Alive => Told::Alive,
                    asked => answer(&attendee, asked).await,
                };
                drop(attendee);
                tell(to, &told).await?;
            }
            changed = view.changed() => {
                // Its seat was removed.
                if changed.is_err() {
                    return Ok(());
                }
                show(&mut view, &mut told, to).await?;
            }
        }
    }
}

async fn answer(attendee: &Attendee, asked: Asked) -> Told {
    let (no, answer) = match asked {
        Asked::Read(no) => (no, attendee.read().await.map(Answer::Read)),
        Asked::Propose {
            no,
            expected,
            mapping,
        } => {
            let proposed = attendee.propose(expected, mapping).await;
            (no, proposed.map(Answer::Proposed))
        }
        Asked::Announce { no, about } => {
            let announced = attendee.announce(about).await;
            (no, announced.map(|()| Answer::Announced))
        }
        Asked::Hello { .. }
        | Asked::Alive
        | Asked::Leave
        | Asked::Challenge(_)
        | Asked::Proof(_) => return Told::Alive,
    };
    let failed = |why: Error| Answer::Failed(why.to_string());
    Told::Answer(no, answer.unwrap_or_else(failed))
}

/// Sends what has changed since the last call.
async fn show(
    view: &mut watch::Receiver<View>,
    told: &mut View,
    to: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let now = view.borrow_and_update().clone();
    if let Some(state) = now.state.as_ref().filter(|_| now.epoch() > told.epoch()) {
        tell(to, &Told::Mapping(state.clone())).await?;
    }
    let who = |view: &View| (view.is_member, view.leader);
    if who(&now) != who(told) || now.members != told.members {
        let members = Told::Members {
            is_member: now.is_member,
            leader: now.leader,
            members: now.members.clone(),
        };
        tell(to, &members).await?;
    }
    *told = now;
    Ok(())
}

/// A client that takes nothing for the length of a lease is disconnected.
async fn tell(to: &mut OwnedWriteHalf, told: &Told) -> io::Result<()> {
    timeout(LEASE, frames::write(to, &told.encode())).await?
}
