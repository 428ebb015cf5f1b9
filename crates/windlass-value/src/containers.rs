//! Lists and maps of payloads.
//!
//! They hold payloads, which hold lists and maps, in any number of levels. Dropping one therefore
//! does not recurse: the levels are taken apart and wait in a vector. Rust values inside of
//! payloads have destructors of their own, which may drop further payloads; those levels are
//! counted (`windlass_core::deep`), and continue on a fresh stack.
//!
//! Rejected: a destructor of `Payload` itself. A type with a destructor cannot be taken apart by
//! `match`, which is what most receivers do with a payload.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use windlass_core::deep::nested;

use crate::payload::Payload;

/// The values of a [`Payload::List`]: a shared slice, cheap to clone.
#[derive(Clone)]
pub struct PayloadList(Arc<[Payload]>);

/// The entries of a [`Payload::Map`]: a shared map, cheap to clone.
#[derive(Clone)]
pub struct PayloadMap(Arc<BTreeMap<Arc<str>, Payload>>);

impl PayloadList {
    /// Returns the address of the values. Lists of the same address are one list, which is in
    /// several places.
    pub fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    /// Returns true if there are clones of this list.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl PayloadMap {
    /// Returns the address of the entries. Maps of the same address are one map, which is in
    /// several places.
    pub fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    /// Returns true if there are clones of this map.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Drop for PayloadList {
    #[inline]
    fn drop(&mut self) {
        // Not the last holder: the last one takes it apart. If two threads let go at the same time,
        // neither does, and the levels below are taken apart one by one.
        if let Some(values) = Arc::get_mut(&mut self.0)
            && values.iter().any(has_levels)
        {
            drop_levels(|levels| take_levels(values.iter_mut(), levels));
        }
    }
}

impl Drop for PayloadMap {
    #[inline]
    fn drop(&mut self) {
        if let Some(entries) = Arc::get_mut(&mut self.0)
            && entries.values().any(has_levels)
        {
            drop_levels(|levels| take_levels(entries.values_mut(), levels));
        }
    }
}

/// Returns true if the destructor of this payload may drop other payloads.
fn has_levels(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::List(_) | Payload::Map(_) | Payload::Opaque(_)
    )
}

/// Moves the payloads that have levels out of their container. The last comes first, so that they
/// are dropped in their order.
fn take_levels<'a>(
    values: impl DoubleEndedIterator<Item = &'a mut Payload>,
    levels: &mut Vec<Payload>,
) {
    let values = values.rev().filter(|value| has_levels(value));
    levels.extend(values.map(std::mem::take));
}

/// Drops what `first` takes out of a container, and what is in there, and so on.
#[cold]
fn drop_levels(first: impl FnOnce(&mut Vec<Payload>)) {
    nested(|| {
        let mut levels = Vec::new();
        first(&mut levels);
        while let Some(mut payload) = levels.pop() {
            match &mut payload {
                Payload::List(PayloadList(values)) => {
                    if let Some(values) = Arc::get_mut(values) {
                        take_levels(values.iter_mut(), &mut levels);
                    }
                }
                Payload::Map(PayloadMap(entries)) => {
                    if let Some(entries) = Arc::get_mut(entries) {
                        take_levels(entries.values_mut(), &mut levels);
                    }
                }
                _ => {}
            }
            drop(payload);
        }
    });
}

impl Deref for PayloadList {
    type Target = [Payload];

    #[inline]
    fn deref(&self) -> &[Payload] {
        &self.0
    }
}

impl Deref for PayloadMap {
    type Target = BTreeMap<Arc<str>, Payload>;

    #[inline]
    fn deref(&self) -> &BTreeMap<Arc<str>, Payload> {
        &self.0
    }
}

impl From<Vec<Payload>> for PayloadList {
    fn from(values: Vec<Payload>) -> PayloadList {
        PayloadList(values.into())
    }
}

impl From<BTreeMap<Arc<str>, Payload>> for PayloadMap {
    fn from(entries: BTreeMap<Arc<str>, Payload>) -> PayloadMap {
        PayloadMap(Arc::new(entries))
    }
}

impl FromIterator<Payload> for PayloadList {
    fn from_iter<I: IntoIterator<Item = Payload>>(values: I) -> PayloadList {
        PayloadList(values.into_iter().collect())
    }
}

impl FromIterator<(Arc<str>, Payload)> for PayloadMap {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Payload)>>(entries: I) -> PayloadMap {
        PayloadMap(Arc::new(entries.into_iter().collect()))
    }
}

impl PartialEq for PayloadList {
    fn eq(&self, other: &PayloadList) -> bool {
        Payload::List(self.clone()) == Payload::List(other.clone())
    }
}

impl PartialEq for PayloadMap {
    fn eq(&self, other: &PayloadMap) -> bool {
        Payload::Map(self.clone()) == Payload::Map(other.clone())
    }
}

impl fmt::Debug for PayloadList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Payload::List(self.clone()), f)
    }
}

impl fmt::Debug for PayloadMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Payload::Map(self.clone()), f)
    }
}
