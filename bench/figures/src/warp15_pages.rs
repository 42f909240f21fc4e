//! The page of the payments.

use serde_json::json;

use super::warp15::{COPIES, NODES, Options, Row};
use super::warp15_payments::Way;
use rufous_bench::plot::{Bar, Chart, Group};
use rufous_bench::report::Report;
use rufous_bench::stats::Target;
use rufous_bench::table::Table;

/// Balances that differ, where payments are transactions.
const TARGET: Target = Target::AtMost(0.0);

const HEADERS: &str = "store | payment | payments/s | begun again | of 100 payments | wrong balances | debits lost | credits lost | \
     in doubt | every balance exact";

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(2, HEADERS);
    for row in rows {
        let audit = &row.audit;
        let again = row.retries as f64 * 100.0 / row.payments.max(1) as f64;
        table.row(vec![
            row.store.to_owned(),
            row.way.name().to_owned(),
            format!("{:.0}", row.payments as f64 / row.seconds),
            row.retries.to_string(),
            format!("{again:.1}"),
            format!("{} of {}", audit.wrong, audit.accounts),
            money(audit.not_debited),
            money(audit.not_credited),
            row.in_doubt.to_string(),
            if audit.wrong == 0 { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Cents, with a point.
fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

pub(crate) fn report(options: &Options, rows: &[Row]) -> Report {
    let accounts = options.accounts();
    let transactions = rows.iter().filter(|row| row.way != Way::Plain);
    let wrong: u64 = transactions.map(|row| row.audit.wrong).sum();
    Report {
        slug: "warp-15",
        part_of: None,
        title: "Payments by card, and the balances after them".into(),
        command: "cargo xtask figures warp15".into(),
        method: vec![
            format!(
                "{} cards and {} merchants have an account each; a payment takes a random amount of up to 100.00 from a card's and gives it to a \
                 merchant's, both drawn uniformly. {} payments in each row, by {} clients at the plain port of each of {NODES} nodes with one worker each, {COPIES} \
                 copies of each slot and logs that are synced every second; all are processes of this machine. Redis is one process with its log on, \
                 too, and has as many clients as the three nodes.",
                accounts.cards,
                accounts.merchants,
                options.payments(),
                options.clients.max(1),
            ),
            "In the first two ways a client reads both balances in one round trip, computes the new ones, and writes them in a second one. *GET, SET* does nothing against \
             other clients between the two. With *WATCH* the writes are refused (nil) if a balance has changed, and the client begins again after a random \
             pause, of less than 0.5 ms at first and twice as long each further time. *INCRBY* in MULTI needs no balance, and one round trip. \
             At the end all balances are read, and compared with the sums of the payments that were acknowledged."
                .into(),
            "![Payments a second](warp-15.svg)".into(),
        ],
        table: table(rows),
        chart: None,
        notes: vec![
            format!(
                "Wrong balances where payments are transactions: {wrong}; {} {}.",
                TARGET.show(),
                TARGET.verdict(wrong as f64)
            ),
            "A debit is lost where another client has written the card's balance between read and write, a credit where it was the merchant's. There are fewer \
             merchants than cards, so credits are lost more often."
                .into(),
            "Begun again counts nil replies, and errors after which nothing was done. A payment in doubt was answered with UNKNOWNRESULT, or, without a transaction, with an error after one of its writes."
                .into(),
            "Nodes and clients share the processors of this machine. A single Redis keeps one copy, and sends no messages to other nodes.".into(),
        ],
        data: json!({
            "cards": accounts.cards,
            "merchants": accounts.merchants,
            "clients": options.clients.max(1) * NODES,
            "rows": rows,
        }),
    }
}

pub(crate) fn chart(rows: &[Row]) -> Chart {
    let mut groups: Vec<Group> = Vec::new();
    for way in Way::ALL {
        let of_way = rows.iter().filter(|row| row.way == way);
        let bars = of_way.map(|row| {
            let rate = row.payments as f64 / row.seconds;
            let series = usize::from(row.store != rows[0].store);
            let exact = if row.audit.wrong == 0 {
                "exact"
            } else {
                "money lost"
            };
            Bar::new(series, rate, format!("{rate:.0}, {exact}"))
        });
        groups.push(Group {
            label: label(way).into(),
            bars: bars.collect(),
            target: None,
        });
    }
    let mut series: Vec<String> = rows.iter().map(|row| row.store.to_owned()).collect();
    series.dedup();
    Chart {
        title: "Payments a second".into(),
        axis: "payments a second, and whether the balances are exact".into(),
        series,
        groups,
    }
}

/// Short enough for the room beside the bars.
fn label(way: Way) -> &'static str {
    match way {
        Way::Watched => "WATCH, MULTI, EXEC",
        Way::Plain | Way::Increments => way.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::warp15::Audit;
    use super::*;

    #[test]
    fn rows_tell_what_is_lost() {
        assert_eq!(money(12_345), "123.45");
        assert_eq!(money(-5), "-0.05");
        let row = |store, way, wrong| Row {
            store,
            way,
            payments: 1000,
            seconds: 2.0,
            retries: 50,
            in_doubt: 0,
            audit: Audit {
                accounts: 110,
                wrong,
                not_debited: 0,
                not_credited: 250,
            },
        };
        let rows = [
            row("Rufous", Way::Plain, 3),
            row("Rufous", Way::Watched, 0),
            row("Redis", Way::Plain, 4),
        ];
        let text = table(&rows).terminal();
        for part in ["500", "5.0", "3 of 110", "2.50", "yes", "no"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let chart = chart(&rows);
        assert_eq!(chart.series, ["Rufous", "Redis"]);
        assert_eq!(chart.groups[0].bars.len(), 2);
        assert!(chart.svg().unwrap().contains("money lost"));
    }
}
