//! One message of every input makes an invocation: `all_inputs`.

use crate::run::state::triggers::ready::ReadyCalls;
use crate::run::state::triggers::waiting::WaitingMessages;

/// Makes an invocation of the oldest message of every input; false if an input has none.
pub(crate) fn fire(waiting: &mut WaitingMessages, ready: &mut ReadyCalls) -> bool {
    if !waiting.has_one_of_each() {
        return false;
    }
    ready.push_all(waiting.take_fronts());
    true
}
