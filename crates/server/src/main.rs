//! The `rufous` program.

use rufous_server::config::Config;
use rufous_server::node::Node;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let mut config = Config::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => config.port = args.next().unwrap_or_default().parse()?,
            "--workers" => config.workers = args.next().unwrap_or_default().parse()?,
            _ => {}
        }
    }
    let node = Node::start(&config)?;
    node.join();
    Ok(())
}
