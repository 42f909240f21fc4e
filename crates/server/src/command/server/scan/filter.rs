//! The options of SCAN.

use rufous_base::Args;
use rufous_command::{Failure, options};
use rufous_datatype::glob::Glob;
use rufous_kernel::shard::Item;

#[derive(Clone, Debug)]
pub(super) struct Filter {
    glob: Option<Glob>,
    pub(super) count: usize,
    kind: Option<Vec<u8>>,
}

impl Filter {
    pub(super) fn parse(args: &Args<'_>) -> Result<Self, Failure> {
        let mut filter = Self {
            glob: None,
            count: 10,
            kind: None,
        };
        let mut at = 2;
        while at < args.len() {
            let (word, value) = (args.get(at), args.get(at + 1));
            if at + 1 == args.len() {
                return Err(Failure::SYNTAX);
            } else if options::is(word, "COUNT") {
                let count = options::integer(value)?;
                filter.count = usize::try_from(count)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or(Failure::SYNTAX)?;
            } else if options::is(word, "MATCH") {
                filter.glob = Some(Glob::new(value, false)).filter(|glob| !glob.is_all());
            } else if options::is(word, "TYPE") {
                filter.kind = Some(value.to_vec());
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }

    pub(super) fn matches(&self, item: &Item<'_>) -> bool {
        let of_type = |kind: &Vec<u8>| kind.eq_ignore_ascii_case(item.value.type_name().as_bytes());
        self.kind.as_ref().is_none_or(of_type)
            && self.glob.as_ref().is_none_or(|glob| glob.matches(item.key))
    }
}
