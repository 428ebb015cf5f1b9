//! A process of any type.

use std::any::Any;
use std::sync::Arc;

use super::Shell;
use crate::error::SendError;
use crate::message::Message;

/// A process of any type, as others see it.
pub(crate) trait Resident: Any + Send + Sync {
    fn shell(&self) -> &Shell;
    /// Puts a message of no particular type into its mailbox.
    fn deliver(&self, message: Message) -> Result<(), SendError<Message>>;
    fn unread(&self) -> Option<usize>;
    fn dropped(&self) -> u64;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
