//! What a process has been given, and what it is given next.
//!
//! Each begins to look at a place of its own, so that processes seldom meet; where they do, the page
//! is the first one's, and the other looks further.

use crate::page::{self, Page, SIZE};
use std::io::{self, ErrorKind};
use std::ops::Range;

/// Where single ports begin: well-known services, the usual ports of Rufous and Redis, and most first
/// ports of blocks are below.
pub(crate) const SINGLE: u16 = 10_000;

/// Where blocks begin: ports below are for the system's services.
pub(crate) const BLOCK: u16 = 1_024 + SIZE;

pub(crate) struct Given {
    /// No port of the system's own, nor one above.
    below: u16,
    /// Pages to look at next.
    next_page: u32,
    next_block: u32,
    /// Of the page that was held last for single ports.
    left: Range<u16>,
    held: Vec<Page>,
}

impl Given {
    /// Ports below one, looked for from a place that follows from `seed`.
    pub(crate) fn new(below: u16, seed: u32) -> Self {
        // Processes that start one after the other have numbers side by side.
        let next_page = seed.wrapping_mul(31);
        Self {
            below,
            next_page,
            next_block: next_page,
            left: 0..0,
            held: Vec::new(),
        }
    }

    pub(crate) fn port(&mut self) -> io::Result<u16> {
        let pages = SINGLE / SIZE..self.below / SIZE;
        // The page begun, and then each once.
        for _ in 0..=pages.len() {
            for port in self.left.by_ref() {
                if page::is_free(port)? {
                    return Ok(port);
                }
            }
            let Some(number) = nth(&pages, self.next_page) else {
                break;
            };
            self.next_page = self.next_page.wrapping_add(1);
            if let Some(page) = Page::hold(number)? {
                self.left = page.ports();
                self.held.push(page);
            }
        }
        Err(self.none(&format!("free port from {SINGLE} on")))
    }

    pub(crate) fn block(&mut self, count: u16, distances: &[u16]) -> io::Result<u16> {
        let Some(farthest) = distances.iter().max().filter(|_| count > 0) else {
            let why = "a block has a port and a distance at least";
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        };
        let room = self.below.saturating_sub(*farthest).saturating_sub(count);
        // First ports are those of pages, so that few pages are begun.
        let firsts = BLOCK / SIZE..(room / SIZE).saturating_add(1);
        for _ in 0..firsts.len() {
            let Some(number) = nth(&firsts, self.next_block) else {
                break;
            };
            self.next_block = self.next_block.wrapping_add(1);
            let first = number * SIZE;
            let rows = distances.iter().map(|distance| first + distance);
            if let Some(pages) = hold_rows(rows, count)? {
                self.held.extend(pages);
                return Ok(first);
            }
        }
        let what =
            format!("{count} free ports in a row at distances {distances:?} from {BLOCK} on");
        Err(self.none(&what))
    }

    fn none(&self, what: &str) -> io::Error {
        let below = self.below;
        let why = format!(
            "no {what} and below {below}, where the system's own begin: end what listens there \
             (`ss -ltn`) and other tests, or have the system begin later, as by \
             `sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"`"
        );
        io::Error::new(ErrorKind::AddrNotAvailable, why)
    }
}

/// Counted over and over.
fn nth(pages: &Range<u16>, count: u32) -> Option<u16> {
    let len = u32::try_from(pages.len()).ok()?;
    let at = u16::try_from(count.checked_rem(len)?).ok()?;
    Some(pages.start + at)
}

/// Holds the pages of all rows, each of so many ports, if they are to be had and every port is free.
fn hold_rows(rows: impl Iterator<Item = u16> + Clone, count: u16) -> io::Result<Option<Vec<Page>>> {
    let mut pages: Vec<u16> = rows
        .clone()
        .flat_map(|first| first / SIZE..=(first + (count - 1)) / SIZE)
        .collect();
    pages.sort_unstable();
    pages.dedup();
    let mut held = Vec::new();
    for number in pages {
        match Page::hold(number)? {
            Some(page) => held.push(page),
            None => return Ok(None),
        }
    }
    for port in rows.flat_map(|first| first..first + count) {
        if !page::is_free(port)? {
            return Ok(None);
        }
    }
    Ok(Some(held))
}
