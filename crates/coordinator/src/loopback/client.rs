//! The client of the coordinator on the node's machine.
//!
//! One task keeps the connection and the view, as with etcd: after any failure it reconnects with
//! its lease. Meanwhile the last view stays, marked as not current.

use super::frames::{self, Answer, Asked, MAX_FIRST, MAX_TOLD, Told};
use super::proof::{self, Nonces, Role, Secret};
use super::{BEAT, LEASE};
use crate::{AgreedMapping, Coordinator, Error, Member, Proposed, View, check_about, check_size};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// Timeout of a request.
const PATIENCE: Duration = LEASE;
/// Delay between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(250);
/// Limit on requests, and on messages of the coordinator, that wait.
const WAITING: usize = 64;

/// See the module's description. While it exists, its node counts as alive.
pub struct Client {
    view: watch::Receiver<View>,
    shared: Arc<Shared>,
    questions: mpsc::Sender<Question>,
    task: JoinHandle<()>,
}

struct Shared {
    address: String,
    cluster: String,
    secret: Option<Secret>,
    me: Mutex<Member>,
    /// 0: it has none, so that it is no member.
    lease: watch::Sender<u64>,
}

struct Question {
    /// Makes the request with its number.
    ask: Box<dyn FnOnce(u64) -> Asked + Send>,
    /// Dropped if there is no connection.
    answer: oneshot::Sender<Answer>,
}

impl Client {
    /// Registers a node as alive until the client is dropped. The coordinator at `host:port` may be
    /// unavailable: then the view stays empty until it can be reached. If there is a secret, both prove that
    /// they know it.
    pub fn open(
        address: &str,
        cluster: &str,
        secret: Option<Secret>,
        me: Member,
    ) -> Result<Self, Error> {
        check_about(&me.about)?;
        let shared = Arc::new(Shared {
            address: address.to_owned(),
            cluster: cluster.to_owned(),
            secret,
            me: Mutex::new(me),
            lease: watch::Sender::new(0),
        });
        let (shown, view) = watch::channel(View::default());
        let (questions, asked) = mpsc::channel(WAITING);
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            view: shown,
            asked,
        };
        Ok(Self {
            view,
            shared,
            questions,
            task: tokio::spawn(keeper.run()),
        })
    }

    async fn ask(&self, ask: impl FnOnce(u64) -> Asked + Send + 'static) -> Result<Answer, Error> {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            ask: Box::new(ask),
            answer,
        };
        let asked = async {
            self.questions.send(question).await.ok()?;
            answered.await.ok()
        };
        match timeout(PATIENCE, asked).await {
            Ok(Some(Answer::Failed(why))) => Err(Error::Away(why)),
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Error::Away("not connected".to_owned())),
            Err(_) => Err(Error::Away("no answer in time".to_owned())),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.view.borrow(), self.shared.address)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn strange() -> Error {
    Error::Damaged("it answers something else".to_owned())
}

impl Coordinator for Client {
    fn view(&self) -> watch::Receiver<View> {
        self.view.clone()
    }

    async fn read(&self) -> Result<Option<AgreedMapping>, Error> {
        match self.ask(Asked::Read).await? {
            Answer::Read(state) => Ok(state),
            _ => Err(strange()),
        }
    }

    async fn propose(&self, expected: u64, mapping: Vec<u8>) -> Result<Proposed, Error> {
        check_size(&mapping)?;
        if *self.shared.lease.borrow() == 0 {
            return Ok(Proposed::NotAlive);
        }
        let asked = self.ask(move |no| Asked::Propose {
            no,
            expected,
            mapping,
        });
        match asked.await? {
            Answer::Proposed(proposed) => Ok(proposed),
            _ => Err(strange()),
        }
    }

    async fn announce(&self, about: Vec<u8>) -> Result<(), Error> {
        check_about(&about)?;
        self.shared.lock().about.clone_from(&about);
        match self.ask(move |no| Asked::Announce { no, about }).await? {
            Answer::Announced => Ok(()),
            _ => Err(strange()),
        }
    }

    async fn leave(self) {
        let (answer, left) = oneshot::channel();
        let question = Question {
            ask: Box::new(|_| Asked::Leave),
            answer,
        };
        // Dropped as soon as it is sent, or cannot be sent.
        let leaving = async {
            if self.questions.send(question).await.is_ok() {
                let _said = left.await;
            }
        };
        let _late = timeout(PATIENCE, leaving).await;
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Member> {
        self.me.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of one node.
struct Keeper {
    shared: Arc<Shared>,
    view: watch::Sender<View>,
    asked: mpsc::Receiver<Question>,
}

impl Keeper {
    async fn run(mut self) {
        let mut said = String::new();
        loop {
            let Err(error) = self.follow().await;
            let error = error.to_string();
            if said != error {
                tracing::warn!(%error, "the coordinator is unreachable: membership cannot change");
                said = error;
            }
            self.view.send_modify(|view| {
                view.is_current = false;
                view.is_member = false;
            });
            // Requests fail while there is no connection.
            let refuse = async { while self.asked.recv().await.is_some() {} };
            let _rested = timeout(PAUSE, refuse).await;
            if self.asked.is_closed() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Follows the coordinator until the connection fails.
    async fn follow(&mut self) -> io::Result<Infallible> {
        let connected = timeout(PATIENCE, TcpStream::connect(&self.shared.address));
        let stream = connected.await??;
        stream.set_nodelay(true)?;
        let (mut from, mut to) = stream.into_split();
        if let Some(secret) = &self.shared.secret {
            prove(secret, &mut from, &mut to).await?;
        }
        let hello = Asked::Hello {
            lease: *self.shared.lease.borrow(),
            cluster: self.shared.cluster.clone(),
            me: self.shared.lock().clone(),
        };
        say(&mut to, &hello).await?;
        let (news, mut told) = mpsc::channel(WAITING);
        let reading = tokio::spawn(hear(from, news));
        let done = self.serve(&mut told, &mut to).await;
        reading.abort();
        done
    }

    async fn serve(
        &mut self,
        told: &mut mpsc::Receiver<Told>,
        to: &mut OwnedWriteHalf,
    ) -> io::Result<Infallible> {
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut next) = (Instant::now(), 0);
        let mut waiting: BTreeMap<u64, oneshot::Sender<Answer>> = BTreeMap::new();
        loop {
            tokio::select! {
                _ = beat.tick() => {
                    if heard.elapsed() > LEASE {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    waiting.retain(|_, answer| !answer.is_closed());
                    say(to, &Asked::Alive).await?;
                }
                told = told.recv() => {
                    let told = told.ok_or(io::ErrorKind::UnexpectedEof)?;
                    heard = Instant::now();
                    match told {
                        Told::Answer(no, answer) => {
                            if let Some(asked) = waiting.remove(&no) {
                                let _gone = asked.send(answer);
                            }
                        }
                        told => self.take(told)?,
                    }
                }
                question = self.asked.recv() => {
                    let Some(question) = question else {
                        // Its node is leaving; this task ends with it.
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    };
                    next += 1;
                    let asked = (question.ask)(next);
                    if asked != Asked::Leave {
                        waiting.insert(next, question.answer);
                    }
                    say(to, &asked).await?;
                }
            }
        }
    }

    /// A message of the coordinator.
    fn take(&self, told: Told) -> io::Result<()> {
        match told {
            Told::Welcome(lease) => {
                self.shared.lease.send_replace(lease);
            }
            Told::Refused(why) => {
                self.shared.lease.send_replace(0);
                return Err(io::Error::other(why));
            }
            Told::Mapping(state) => self.view.send_modify(|view| view.advance(state)),
            Told::Members {
                is_member,
                leader,
                members,
            } => {
                self.view.send_modify(|view| {
                    view.is_current = true;
                    view.is_member = is_member;
                    view.leader = leader;
                    view.members = members;
                });
                if !is_member {
                    self.shared.lease.send_replace(0);
                    return Err(io::Error::other(
                        "another node took this node's registration",
                    ));
                }
            }
            Told::Alive | Told::Answer(..) | Told::Challenge(_) | Told::Proof(_) => {}
        }
        Ok(())
    }
}

/// Proves that the node knows the secret, and has the coordinator prove it.
async fn prove(
    secret: &Secret,
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let node = proof::nonce()?;
    say(to, &Asked::Challenge(node)).await?;
    let coordinator = match answer(from).await? {
        Told::Challenge(nonce) => nonce,
        other => return Err(unproven(other)),
    };
    let nonces = Nonces { node, coordinator };
    let code = proof::code(secret, Role::Node, &nonces);
    say(to, &Asked::Proof(code)).await?;
    match answer(from).await? {
        Told::Proof(code) if proof::is_code(secret, Role::Coordinator, &nonces, &code) => Ok(()),
        other => Err(unproven(other)),
    }
}

/// A frame before the coordinator has proved itself.
async fn answer(from: &mut OwnedReadHalf) -> io::Result<Told> {
    let frame = timeout(PATIENCE, frames::read(from, MAX_FIRST)).await??;
    let told = frame.as_deref().map(Told::decode);
    let told = told.ok_or_else(|| {
        io::Error::other(
            "the coordinator has closed the connection: it may be of a version that knows no secret",
        )
    })?;
    told.ok_or_else(frames::nonsense)
}

fn unproven(told: Told) -> io::Error {
    io::Error::other(match told {
        Told::Refused(why) => why,
        _ => "the coordinator has not proved that it knows the cluster's secret".to_owned(),
    })
}

async fn hear(mut from: OwnedReadHalf, news: mpsc::Sender<Told>) -> io::Result<()> {
    while let Some(frame) = frames::read(&mut from, MAX_TOLD).await? {
        let told = Told::decode(&frame).ok_or_else(frames::nonsense)?;
        if news.send(told).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn say(to: &mut OwnedWriteHalf, asked: &Asked) -> io::Result<()> {
    timeout(PATIENCE, frames::write(to, &asked.encode())).await?
}
