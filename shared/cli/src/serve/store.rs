//! The rows: a DynamoDB emulator in this process, over one SQLite file, behind the same client that talks to AWS.

use collie_dynamo::{DynamoItems, DynamoTracking, local, schema};
use std::path::Path;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The emulator's database.
pub(crate) type Database = dynoxide::Database;

const TABLE: &str = "collie";

/// The open store.
pub(crate) struct Store {
    pub(crate) items: DynamoItems,
    pub(crate) tracking: DynamoTracking,
    pub(crate) database: Database,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), String>>,
}

impl Store {
    /// Opens the file, serves it on a free port of this machine, and makes the table where there is none.
    pub(crate) async fn open(file: &Path) -> Result<Self, String> {
        let path = file.to_str().ok_or("the data directory's path is not UTF-8")?;
        let database = Database::new(path).map_err(|error| format!("{path}: {error}"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let endpoint = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move { drop(stopped.await) };
        let server = tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database.clone(), until));
        let client = local::client(endpoint);
        schema::create_table(&client, TABLE).await.map_err(|failure| failure.to_string())?;
        let (items, tracking) = (DynamoItems::new(client.clone(), TABLE.to_owned()), DynamoTracking::new(client, TABLE.to_owned()));
        Ok(Self { items, tracking, database, stop, server })
    }

    /// Closes it once the last request has ended.
    pub(crate) async fn close(self) {
        let Self { items, tracking, database, stop, server } = self;
        drop((items, tracking, database));
        let _ = stop.send(());
        if let Ok(Err(error)) = server.await {
            tracing::warn!(error, "the store did not close cleanly");
        }
    }
}
