//! Wrong passwords by address: an address that has sent many has its further attempts checked slowly,
//! one after the other.
//!
//! They wait before they are checked, and not after it: a client that hangs up where an answer is late
//! would know by that alone that its guess was wrong. Connections that are authenticated never wait.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Time that each wrong password adds to its address's debt, which passes by itself; also the time
/// between two attempts of an address that owes more than [`FREE_US`].
const EACH_US: u64 = 100_000;
/// Debt without consequences: 20 wrong passwords at once.
const FREE_US: u64 = 20 * EACH_US;
/// Limit on the debt: a minute after the last wrong password an address is like any other.
const MOST_US: u64 = 60_000_000;
/// The longest wait of an attempt. Those that would wait longer are refused.
const PATIENCE_US: u64 = 2_000_000;
/// Limit on the addresses that are remembered. If there are more, those that owe least are forgotten.
const MOST_ADDRESSES: usize = 4096;

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// It waits until then, and is checked.
    At(u64),
    /// Too many others of its address wait.
    Never,
}

/// A bounded table of addresses. See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    debts: BTreeMap<IpAddr, Debt>,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    until_us: u64,
    /// When its next attempt may be checked.
    next_us: u64,
    is_told: bool,
}

impl Debt {
    fn is_slow(self, now_us: u64) -> bool {
        self.until_us.saturating_sub(now_us) > FREE_US
    }
}

impl Guesses {
    /// A connection that is not authenticated wants to have a password checked.
    pub(crate) fn on_attempt(&mut self, now_us: u64, address: IpAddr) -> Turn {
        let Some(debt) = self.debts.get_mut(&address) else {
            return Turn::Now;
        };
        if !debt.is_slow(now_us) {
            return Turn::Now;
        }
        let at = debt.next_us.max(now_us);
        if at - now_us > PATIENCE_US {
            return Turn::Never;
        }
        debt.next_us = at + EACH_US;
        if at == now_us {
            return Turn::Now;
        }
        Turn::At(at)
    }

    /// A password was wrong. True if the address is slow from now on.
    pub(crate) fn on_wrong(&mut self, now_us: u64, address: IpAddr) -> bool {
        if !self.debts.contains_key(&address) {
            self.make_room(now_us);
        }
        let debt = self.debts.entry(address).or_insert(Debt {
            until_us: now_us,
            next_us: now_us,
            is_told: false,
        });
        let owes = debt.until_us.saturating_sub(now_us) + EACH_US;
        debt.until_us = now_us + owes.min(MOST_US);
        let is_slow = debt.is_slow(now_us);
        let is_new = is_slow && !debt.is_told;
        debt.is_told = is_slow;
        is_new
    }

    fn make_room(&mut self, now_us: u64) {
        if self.debts.len() < MOST_ADDRESSES {
            return;
        }
        self.debts.retain(|_, debt| debt.until_us > now_us);
        while self.debts.len() >= MOST_ADDRESSES {
            let least = self.debts.iter().min_by_key(|(_, debt)| debt.until_us);
            let Some(address) = least.map(|(address, _)| *address) else {
                return;
            };
            self.debts.remove(&address);
        }
    }
}

/// The address that counts, of a connection's `ip:port`: of IPv6 the network, since its hosts choose
/// the rest. Unix sockets have none.
pub(crate) fn address_of(peer: &str) -> Option<IpAddr> {
    match peer.parse::<SocketAddr>().ok()?.ip() {
        IpAddr::V4(ip) => Some(ip.into()),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => Some(ip.into()),
            None => {
                let network = u128::from(ip) & (u128::MAX << 64);
                Some(Ipv6Addr::from(network).into())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// Wrong passwords of one address that were checked within a time, with so many tries.
    fn checked(guesses: &mut Guesses, from_us: u64, until_us: u64, every_us: u64) -> usize {
        let (mut checked, mut waiting) = (0, Vec::new());
        let mut now_us = from_us;
        while now_us < until_us {
            waiting.retain(|at: &u64| {
                if *at <= now_us {
                    guesses.on_wrong(now_us, A);
                    checked += 1;
                }
                *at > now_us
            });
            match guesses.on_attempt(now_us, A) {
                Turn::Now => {
                    guesses.on_wrong(now_us, A);
                    checked += 1;
                }
                Turn::At(at) => waiting.push(at),
                Turn::Never => {}
            }
            now_us += every_us;
        }
        checked
    }

    #[test]
    fn many_guesses_are_checked_at_a_low_rate() {
        let mut guesses = Guesses::default();
        // 45,000 a second, for ten seconds.
        let checked = checked(&mut guesses, 0, 10_000_000, 22);
        assert!((100..=130).contains(&checked), "{checked}");
        assert_eq!(
            guesses.on_attempt(10_000_000, B),
            Turn::Now,
            "another address"
        );
    }

    #[test]
    fn a_few_mistakes_have_no_consequences() {
        let mut guesses = Guesses::default();
        for _ in 0..20 {
            assert_eq!(guesses.on_attempt(5, A), Turn::Now);
            assert!(!guesses.on_wrong(5, A));
        }
        assert_eq!(guesses.on_attempt(5, A), Turn::Now);
        assert!(guesses.on_wrong(5, A), "said once");
        assert!(!guesses.on_wrong(5, A));
        assert_eq!(guesses.on_attempt(5, A), Turn::Now);
        assert_eq!(guesses.on_attempt(5, A), Turn::At(EACH_US + 5));
        // It passes.
        assert_eq!(guesses.on_attempt(3_000_000, A), Turn::Now);
        assert_eq!(guesses.on_attempt(3_000_000, A), Turn::Now);
    }

    #[test]
    fn who_waits_too_long_is_refused_and_debt_has_an_end() {
        let mut guesses = Guesses::default();
        for _ in 0..10_000 {
            guesses.on_wrong(0, A);
        }
        let turns: Vec<Turn> = (0..30).map(|_| guesses.on_attempt(0, A)).collect();
        assert_eq!(turns[0], Turn::Now);
        assert_eq!(turns[20], Turn::At(PATIENCE_US));
        assert!(turns[21..].iter().all(|turn| *turn == Turn::Never));
        assert_eq!(guesses.on_attempt(MOST_US, A), Turn::Now);
        assert_eq!(guesses.on_attempt(MOST_US, A), Turn::Now);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut guesses = Guesses::default();
        for _ in 0..100 {
            guesses.on_wrong(0, A);
        }
        for host in 0..3 * MOST_ADDRESSES as u32 {
            guesses.on_wrong(0, std::net::Ipv4Addr::from(0x0b00_0000 + host).into());
        }
        assert_eq!(guesses.debts.len(), MOST_ADDRESSES);
        assert!(guesses.debts.contains_key(&A), "it owes most");
        // What is over makes room first.
        guesses.on_wrong(2 * MOST_US, B);
        assert_eq!(guesses.debts.len(), 1);
    }

    #[test]
    fn addresses_of_connections() {
        let check = |peer: &str, expected: Option<&str>| {
            let found = address_of(peer).map(|ip| ip.to_string());
            assert_eq!(found.as_deref(), expected, "{peer}");
        };
        check("10.0.0.1:50000", Some("10.0.0.1"));
        check("[::ffff:10.0.0.1]:50000", Some("10.0.0.1"));
        check("[2001:db8:1:2:3:4:5:6]:1", Some("2001:db8:1:2::"));
        check("/tmp/socket", None);
        check("internal", None);
    }
}
