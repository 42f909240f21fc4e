//! The counters of a worker.

rufous_base::figures! {
    /// A worker's counters of linear transactions.
    pub struct LinearFigures {
        begun("cluster_transactions", "rufous_cluster_transactions_total"):
            "Transactions over several slots that clients of this node have begun.";
        committed("cluster_transactions_committed", "rufous_cluster_transactions_committed_total"):
            "Those of them that were committed.";
        aborted("cluster_transactions_aborted", "rufous_cluster_transactions_aborted_total"):
            "Those of them that were aborted: by a condition or a watched key, except for those that follow.";
        refused("cluster_transactions_aborted_refused", "rufous_cluster_transactions_aborted_refused_total"):
            "Those that a slot has refused with an error: it takes no writes, or what it adds for others is too large.";
        clashed("cluster_transactions_aborted_clashed", "rufous_cluster_transactions_aborted_clashed_total"):
            "Those that were given up, as ones that visit slots in another order had their keys for too long: chains change.";
        read("cluster_transactions_read", "rufous_cluster_transactions_read_total"):
            "Those committed that only read, and took no keys: no value had changed from one time that it was read to the next.";
        read_taken("cluster_transactions_read_taken", "rufous_cluster_transactions_read_taken_total"):
            "Those begun that only read, and had to take their keys: values changed too often, or a node did not answer.";
        read_rounds("cluster_transactions_read_rounds", "rufous_cluster_transactions_read_rounds_total"):
            "Times that the nodes were asked for the values of both kinds: at least twice for each, where several workers have keys.";
        slots("cluster_transactions_slots", "rufous_cluster_transactions_slots_total"):
            "Slots of all that have begun, together.";
        waiting("cluster_transactions_waiting", "rufous_cluster_transactions_waiting"):
            "Those of them without an outcome yet.";
        prepared("cluster_transactions_open", "rufous_cluster_transactions_open"):
            "Transactions that slots of this node have not forgotten yet: with appendfsync everysec for some seconds after their ends, until logs are synced.";
        recovering("cluster_slots_recovering", "rufous_cluster_slots_recovering"):
            "Slots of this node that may have lost the ends of their logs, and are closed until they have asked all others what they lack.";
        ahead("cluster_transactions_ahead", "rufous_cluster_transactions_ahead_total"):
            "Times that a slot of this node has prepared a transaction together with the slot before, ahead of its message.";
        shared("cluster_transactions_beside", "rufous_cluster_transactions_beside_total"):
            "Times that a slot of this node has prepared a transaction that writes a key while others had that key: they are independent, and do not wait.";
        reordered("cluster_transactions_begun_again", "rufous_cluster_transactions_begun_again_total"):
            "Times that a transaction of this node has begun again, as one that visits slots in another order had a key: chains have changed.";
        joined("cluster_transactions_writes_joined", "rufous_cluster_transactions_writes_joined_total"):
            "Writes to copies, of what slots keep of transactions, that went within the message of another slot.";
        again("cluster_transactions_sent_again", "rufous_cluster_transactions_sent_again_total"):
            "Times that a slot or node has sent messages of a transaction again that made no progress.";
    }
}

impl LinearFigures {
    /// A transaction of a client was aborted, and this was told.
    pub(super) fn on_aborted(&mut self, told: &[u8], has_clashed: bool) {
        self.aborted += 1;
        self.clashed += u64::from(has_clashed);
        self.refused += u64::from(!has_clashed && told.starts_with(b"-"));
    }
}

#[cfg(test)]
mod tests {
    use super::LinearFigures;

    #[test]
    fn aborts_are_told_apart_by_their_reasons() {
        let mut seen = LinearFigures::default();
        seen.on_aborted(b":0\r\n", false);
        seen.on_aborted(b"-ERR too large\r\n", false);
        seen.on_aborted(b"-TRYAGAIN keys\r\n", true);
        assert_eq!((seen.aborted, seen.refused, seen.clashed), (3, 1, 1));
    }
}
