#![doc = include_str!("../README.md")]

mod client;
mod config_command;
mod demo;
mod error;
mod output;
mod policy_test;
mod secrets;
mod serve;
mod serve_args;
mod text;
mod token;

use clap::{Parser, Subcommand};
use client::commands;
use client::render;
use config_command::ConfigArgs;
use demo::DemoArgs;
use error::Error;
use policy_test::PolicyArgs;
use serve_args::ServeArgs;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use token::TokenArgs;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Drives changes to merge on GitLab.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What is logged on standard error, such as `info` or `collie_engine=debug`.
    #[arg(long, env = "COLLIE_LOG", global = true)]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the whole system in this process.
    Serve(Box<ServeArgs>),
    /// Print a token of the local issuer.
    Token(TokenArgs),
    /// Merge one change against a simulated GitLab, and show how.
    Demo(DemoArgs),
    /// Look at a configuration file before it is deployed.
    Config(ConfigArgs),
    /// Try the rules of a project's policy.
    Policy(PolicyArgs),
    #[command(flatten)]
    Client(commands::Command),
}

impl Command {
    /// What is logged where nobody says it: a server tells what it does, a command only what goes wrong. The store's
    /// own server warns of every condition that does not hold, which is how writers learn that others were faster.
    const fn usual_log(&self) -> &'static str {
        match self {
            Self::Serve(_) => "info,dynoxide=error",
            _ => "warn,dynoxide=error",
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Every client of this process; one that someone installed before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let json = matches!(&cli.command, Command::Client(command) if command.access().json);
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => Err(Error::Failed(format!("no runtime: {error}"))),
    };
    done.map_or_else(|error| report(&error, json), |()| ExitCode::SUCCESS)
}

async fn run(cli: Cli) -> Result<(), Error> {
    let filter = cli.log.as_deref().unwrap_or_else(|| cli.command.usual_log());
    let filter = EnvFilter::try_new(filter).map_err(|error| Error::Usage(format!("--log {filter:?}: {error}")))?;
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
    match cli.command {
        Command::Serve(args) => serve_args::run(*args).await,
        Command::Token(args) => token::run(&args),
        Command::Demo(args) => demo::run(args).await,
        Command::Config(args) => config_command::run(args).await,
        Command::Policy(args) => policy_test::run(&args),
        Command::Client(command) => commands::run(command).await,
    }
}

/// Says what went wrong: programs get the problem document where they expect documents.
fn report(error: &Error, json: bool) -> ExitCode {
    match error {
        Error::Refused(problem) if json => output::document(problem),
        Error::Refused(problem) => render::problem(problem).iter().for_each(output::error),
        Error::Usage(text) | Error::Failed(text) | Error::Unreachable(text) => output::error(format!("collie: {text}")),
    }
    error.exit_code()
}

/// Returns when the process is told to stop.
async fn stop_signal() {
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        tracing::error!("SIGTERM cannot be heard");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}
