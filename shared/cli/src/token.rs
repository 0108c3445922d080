//! `collie token`: a token of the local issuer, whose key is in the data directory.

use crate::error::Error;
use crate::serve::{SystemClock, create_private, issuer_dir};
use crate::{output, text};
use clap::Args;
use collie_auth::local::LocalIssuer;
use collie_engine::ports::Clock as _;
use secrecy::ExposeSecret as _;
use std::path::PathBuf;
use std::time::Duration;

/// What `collie token` takes.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The server's data directory.
    #[arg(long, default_value = ".collie")]
    data_dir: PathBuf,
    /// The caller's name; the identity is `local|<name>`.
    #[arg(long, default_value = "developer")]
    identity: String,
    /// May see and move work items of others.
    #[arg(long)]
    admin: bool,
    /// How long it is good for.
    #[arg(long, default_value = "1h", value_parser = text::duration)]
    ttl: Duration,
}

/// Prints a token. It can be made before the server runs for the first time.
pub(crate) fn run(args: &TokenArgs) -> Result<(), Error> {
    create_private(&args.data_dir).map_err(|error| Error::Failed(format!("data directory {}: {error}", args.data_dir.display())))?;
    let issuer = LocalIssuer::open(&issuer_dir(&args.data_dir)).map_err(|error| Error::Failed(error.to_string()))?;
    let token = issuer.token(&args.identity, args.admin, args.ttl, SystemClock.now());
    let token = token.map_err(|error| Error::Usage(format!("--identity {:?}: {error}", args.identity)))?;
    output::line(token.expose_secret());
    Ok(())
}
