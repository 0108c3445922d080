//! A bootstrap binary as a process, with nothing in its environment but what Lambda and the template put there.

use crate::PATIENCE;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, Command};

/// A running function; dropping it ends the process.
pub struct Function {
    child: Child,
    log: PathBuf,
}

impl Function {
    /// Starts a program; its log goes to a file.
    pub(crate) fn start(program: &str, variables: Vec<(&'static str, String)>, log: PathBuf) -> Self {
        let file = std::fs::File::create(&log).unwrap();
        let mut command = Command::new(program);
        command.env_clear().envs(variables).stdin(Stdio::null()).stdout(file).kill_on_drop(true);
        Self { child: command.spawn().unwrap(), log }
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for the process to end by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap()
    }
}
