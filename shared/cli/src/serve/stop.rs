//! The order to stop, as every loop of the process hears it.

use tokio::sync::watch;

/// Gives the order.
#[derive(Debug)]
pub(crate) struct Stopper(watch::Sender<bool>);

/// Hears the order.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

/// An order that has not been given.
pub(crate) fn order() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Gives it.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns once the order was given, or whoever could give it is gone.
    pub(crate) async fn given(&mut self) {
        let _ = self.0.wait_for(|given| *given).await;
    }
}
