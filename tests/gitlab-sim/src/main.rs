//! `gitlab-sim [--listen ADDR] [--seed FILE]`: serves the model of GitLab until it is stopped.

use std::path::PathBuf;

use clap::Parser;
use gitlab_sim::{Clock, Sim, Timing};
use serde_json::{Value, json};

/// A model of GitLab: `/api/v4` as GitLab answers it, `/_sim/` to control it.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8929")]
    listen: String,
    /// Seed file, YAML or JSON; the built-in demonstration if absent.
    #[arg(long)]
    seed: Option<PathBuf>,
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let sim = plant(arguments.seed)?;
    let listener = tokio::net::TcpListener::bind(&arguments.listen).await?;
    announce(&ready_line(&format!("http://{}", listener.local_addr()?), sim.any_token().as_deref()));
    tokio::select! {
        served = sim.serve(listener) => served?,
        stopped = stop_signal() => stopped?,
    }
    Ok(())
}

fn plant(seed: Option<PathBuf>) -> Result<Sim, Failure> {
    match seed {
        Some(file) => Ok(Sim::from_seed(Clock::Wall, &std::fs::read_to_string(file)?)?),
        None => {
            let sim = Sim::demo(Clock::Wall);
            sim.set_timing(|timing| *timing = Timing::quick());
            Ok(sim)
        }
    }
}

fn ready_line(url: &str, token: Option<&str>) -> Value {
    json!({ "ready": true, "gitlab": url, "token": token, "control": format!("{url}/_sim") })
}

#[allow(clippy::print_stdout, reason = "the ready line is this program's one output")]
fn announce(line: &Value) {
    println!("{line}");
}

async fn stop_signal() -> std::io::Result<()> {
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = term.recv() => Ok(()),
    }
}
