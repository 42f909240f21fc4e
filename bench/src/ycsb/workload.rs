//! The six workloads as data.

use clap::ValueEnum;

/// What a client does in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Operation {
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::ReadModifyWrite,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// Which records are popular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// A few records, scattered over all.
    Zipfian,
    /// Those inserted last.
    Latest,
}

/// The core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    A,
    B,
    C,
    D,
    E,
    F,
}

impl Workload {
    /// In the order YCSB recommends: those that insert records come last.
    pub const IN_ORDER: [Self; 6] = [Self::A, Self::B, Self::C, Self::F, Self::D, Self::E];

    /// Percentages, which add up to 100.
    pub fn mix(self) -> &'static [(u64, Operation)] {
        match self {
            Self::A => &[(50, Operation::Read), (50, Operation::Update)],
            Self::B => &[(95, Operation::Read), (5, Operation::Update)],
            Self::C => &[(100, Operation::Read)],
            Self::D => &[(95, Operation::Read), (5, Operation::Insert)],
            Self::E => &[(95, Operation::Scan), (5, Operation::Insert)],
            Self::F => &[(50, Operation::Read), (50, Operation::ReadModifyWrite)],
        }
    }

    pub fn popularity(self) -> Popularity {
        match self {
            Self::D => Popularity::Latest,
            _ => Popularity::Zipfian,
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::A => "50 % read, 50 % update, zipfian",
            Self::B => "95 % read, 5 % update, zipfian",
            Self::C => "read only, zipfian",
            Self::D => "95 % read, 5 % insert, latest",
            Self::E => "95 % scan, 5 % insert, zipfian",
            Self::F => "50 % read, 50 % read-modify-write, zipfian",
        }
    }

    /// The share of operations that insert a record.
    pub fn insert_share(self) -> f64 {
        let inserts = self
            .mix()
            .iter()
            .filter(|(_, operation)| *operation == Operation::Insert);
        inserts.map(|(percent, _)| *percent as f64 / 100.0).sum()
    }

    /// The operation that a ticket in `0..100` stands for.
    pub fn operation(self, mut ticket: u64) -> Operation {
        for (percent, operation) in self.mix() {
            if ticket < *percent {
                return *operation;
            }
            ticket -= percent;
        }
        Operation::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_add_up_and_tickets_follow_them() {
        for workload in Workload::IN_ORDER {
            let total: u64 = workload.mix().iter().map(|(percent, _)| percent).sum();
            assert_eq!(total, 100, "{workload:?}");
            for (percent, operation) in workload.mix() {
                let hits = (0..100)
                    .filter(|t| workload.operation(*t) == *operation)
                    .count();
                assert_eq!(hits as u64, *percent, "{workload:?} {operation:?}");
            }
        }
        assert_eq!(Workload::D.insert_share(), 0.05);
        assert_eq!(Workload::A.insert_share(), 0.0);
    }
}
