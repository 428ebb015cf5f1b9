//! Maps that stand for tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_value::Payload;

use super::ENTRIES;

/// What a map stands for that was made of a table.
pub(crate) enum MapForm<'a> {
    /// The entries of the map.
    Named,
    /// The one entry `#entries`, with this value.
    Reserved(&'a Payload),
    /// A table whose keys are neither 1 to n nor texts.
    Mixed,
}

/// What this map stands for, if it was made of a table.
pub(crate) fn form_of(entries: &BTreeMap<Arc<str>, Payload>) -> MapForm<'_> {
    let flat = match entries.get(ENTRIES) {
        Some(flat) if entries.len() == 1 => flat.as_list().unwrap_or_default(),
        _ => return MapForm::Named,
    };
    match flat {
        [Payload::Text(key), value] if **key == *ENTRIES => MapForm::Reserved(value),
        _ => MapForm::Mixed,
    }
}

/// The keys and values in turn that a map stands for; None if it is a map as any other. Only of
/// keys that a table can have.
pub(super) fn keys_and_values(entries: &BTreeMap<Arc<str>, Payload>) -> Option<&[Payload]> {
    let flat = entries.get(ENTRIES)?.as_list()?;
    let is_key = |key: &Payload| match key {
        Payload::Nil => false,
        Payload::Float(number) => !number.is_nan(),
        _ => true,
    };
    let fits =
        entries.len() == 1 && flat.len().is_multiple_of(2) && flat.iter().step_by(2).all(is_key);
    fits.then_some(flat)
}
