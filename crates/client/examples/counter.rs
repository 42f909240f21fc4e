//! Counts visits from several tasks over one connection, and shows the sum:
//! `cargo run -p rufous-client --example counter -- rufous://127.0.0.1:6379`

use rufous_client::{Client, cmd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> rufous_client::Result<()> {
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("rufous://127.0.0.1:6379");
    let client = Client::connect(url).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for page in ["home", "cart", "help"] {
        let client = client.clone();
        tasks.spawn(async move {
            for _ in 0..100 {
                cmd("HINCRBY")
                    .arg("visits")
                    .arg(page)
                    .arg(1)
                    .query::<()>(&client)
                    .await?;
            }
            Ok::<(), rufous_client::Error>(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        if let Ok(result) = task {
            result?;
        }
    }
    for (page, visits) in client.hgetall::<i64>("visits").await? {
        println!("{page}: {visits}");
    }
    Ok(())
}
