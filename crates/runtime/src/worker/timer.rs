//! When a worker wakes without input.

use crate::clock::Clock;
use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use tokio::time::Sleep;

/// The worker's only timer. It is set again only to fire earlier: an actor
/// that puts its `Tick` off each turn costs nothing.
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    armed_us: Option<u64>,
}

impl Timer {
    pub(super) fn new() -> Self {
        Self {
            sleep: None,
            armed_us: None,
        }
    }

    /// Makes sure that the worker is polled at `due_us` or before. False where
    /// that is now.
    pub(super) fn arm(
        &mut self,
        clock: &Clock,
        now_us: u64,
        due_us: Option<u64>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(due_us) = due_us else { return true };
        if self.armed_us.is_some_and(|at| at > now_us && at <= due_us) {
            return true;
        }
        let (at, due_us) = clock.instant(due_us);
        let at = at.into();
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            empty => empty.insert(Box::pin(tokio::time::sleep_until(at))),
        };
        self.armed_us = Some(due_us);
        if sleep.as_mut().poll(cx).is_ready() {
            self.armed_us = None;
            return false;
        }
        true
    }
}
