//! Faults that are planted on purpose, to see that the oracles find them.

use rufous_chain::planted as chain;
use rufous_kernel::planted as kernel;
use rufous_linear::planted as linear;
use rufous_mapping::planted as mapping;
use rufous_wire::planted as wire;

/// What is wrong. A scenario lists those that can be planted in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// In the kernel.
    Kernel(kernel::Planted),
    /// In the chains.
    Chain(chain::Planted),
    /// A rule of transactions over slots is off.
    Linear(linear::Off),
    /// In the planner.
    Mapping(mapping::Planted),
    /// In the sessions between nodes.
    Wire(wire::Planted),
    /// Replies leave before what they tell of is on disk.
    ReplyBeforeSync,
    /// Now and then a worker believes that it is later than it is.
    ExpiryTooEarly,
    /// A message between workers is lost now and then.
    MessageLost,
    /// A batch for another replica is lost now and then.
    BatchLost,
    /// Clocks run up to a quarter too fast or too slow, where a twentieth is allowed.
    Drift,
    /// A node that was dropped comes back with what its files have.
    KeepsOldData,
    /// The leader does not hear what nodes say of their health.
    HealthNotSaid,
    /// No node looks whether its workers take turns.
    WorkersNotSeen,
    /// A starting node serves before the others have sent it their state.
    ServesAtOnce,
    /// A new node that reaches no node which serves begins with nothing.
    NewServesAlone,
}

impl Fault {
    /// Its name on the command line: that of the variant, in lower case with hyphens.
    pub fn name(self) -> String {
        let variant = match self {
            Fault::Kernel(fault) => format!("{fault:?}"),
            Fault::Chain(fault) => format!("{fault:?}"),
            Fault::Linear(rule) => format!("No{rule:?}"),
            Fault::Mapping(fault) => format!("{fault:?}"),
            Fault::Wire(fault) => format!("{fault:?}"),
            other => format!("{other:?}"),
        };
        let mut name = String::new();
        for letter in variant.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// The one of these that has this name.
    pub fn named(name: &str, of: &[Fault]) -> Result<Fault, String> {
        let mut all = of.iter().copied();
        all.find(|fault| fault.name() == name).ok_or_else(|| {
            let names: Vec<_> = of.iter().map(|fault| fault.name()).collect();
            format!("no fault '{name}'; there are: {}", names.join(", "))
        })
    }

    /// Plants it for what runs on this thread, and none but it.
    pub(super) fn plant(self) {
        kernel::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        });
        chain::plant(match self {
            Fault::Chain(fault) => Some(fault),
            _ => None,
        });
        linear::set(match self {
            Fault::Linear(rule) => Some(rule),
            _ => None,
        });
        mapping::plant(match self {
            Fault::Mapping(fault) => Some(fault),
            _ => None,
        });
        wire::plant(match self {
            Fault::Wire(fault) => Some(fault),
            _ => None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_variants() {
        let all = [Fault::Drift, Fault::Chain(chain::Planted::NoLease)];
        assert_eq!(Fault::named("no-lease", &all), Ok(all[1]));
        let wrong = Fault::named("x", &all).expect_err("no such fault");
        assert_eq!(wrong, "no fault 'x'; there are: drift, no-lease");
    }
}
