//! The stores under test.

use aws_sdk_dynamodb::Client;
use collie_dynamo::{DynamoItems, DynamoTracking, MemoryItems, MemoryTracking, local, schema};
use collie_engine::ports::{Items, Letters, Rates, TrackingRows};
use std::net::SocketAddr;
use std::sync::Arc;

/// What every case works on.
pub(crate) type Store = Arc<dyn Stores>;

/// Every port of the store.
pub(crate) trait Stores: Items + Letters + Rates {}

impl<T: Items + Letters + Rates> Stores for T {}

pub(crate) const TABLE: &str = "collie";

pub(crate) fn memory() -> Store {
    Arc::new(MemoryItems::new())
}

pub(crate) async fn dynamodb() -> Store {
    Arc::new(DynamoItems::new(table().await, TABLE.into()))
}

/// What every case of issue tracking works on.
pub(crate) type Tracking = Arc<dyn TrackingRows>;

pub(crate) fn tracking_memory() -> Tracking {
    Arc::new(MemoryTracking::new())
}

pub(crate) async fn tracking_dynamodb() -> Tracking {
    Arc::new(DynamoTracking::new(table().await, TABLE.into()))
}

/// A client of an empty table in an emulator of its own.
pub(crate) async fn table() -> Client {
    emulator().await.0
}

/// The same with the emulator's address.
pub(crate) async fn emulator() -> (Client, SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
    let client = local::client(format!("http://{address}"));
    schema::create_table(&client, TABLE).await.unwrap();
    (client, address)
}
