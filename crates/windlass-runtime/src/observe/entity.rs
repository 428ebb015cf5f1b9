//! The things that live in a runtime, and how they are visited.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// One thing that lives in a runtime: a worker, a task, a process, a guest, a run of a graph.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entity {
    /// The kind in one word, for example `task` or `process`.
    pub kind: &'static str,
    /// The id, which no other entity of this kind has at the same time.
    pub id: String,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// The id of the entity that it belongs to, if the source knows one.
    pub parent: Option<String>,
    /// What it is doing, in a word or two.
    pub state: Cow<'static, str>,
    /// Where it was spawned.
    pub spawned_at: Option<&'static Location<'static>>,
    /// What it waits for, if the source knows.
    pub waits_for: Option<String>,
    /// Numbers about it, for example how many messages are unread.
    pub counts: Vec<(&'static str, u64)>,
}

impl Entity {
    /// Makes an entity of which only the kind, the id and the state are known.
    pub fn new(
        kind: &'static str,
        id: impl Into<String>,
        state: impl Into<Cow<'static, str>>,
    ) -> Entity {
        Entity {
            kind,
            id: id.into(),
            name: None,
            parent: None,
            state: state.into(),
            spawned_at: None,
            waits_for: None,
            counts: Vec::new(),
        }
    }

    /// Adds the name.
    pub fn named(mut self, name: Option<impl Into<String>>) -> Entity {
        self.name = name.map(Into::into);
        self
    }

    /// Adds where it was spawned.
    pub fn spawned_at(mut self, location: Option<&'static Location<'static>>) -> Entity {
        self.spawned_at = location;
        self
    }

    /// Adds what it waits for.
    pub fn waiting_for(mut self, waits_for: Option<impl Into<String>>) -> Entity {
        self.waits_for = waits_for.map(Into::into);
        self
    }

    /// Adds the entity that it belongs to.
    pub fn child_of(mut self, parent: Option<impl Into<String>>) -> Entity {
        self.parent = parent.map(Into::into);
        self
    }

    /// Adds a number about it.
    pub fn count(mut self, name: &'static str, count: u64) -> Entity {
        self.counts.push((name, count));
        self
    }
}

/// One line, as dumps show it.
impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " {}", self.state)?;
        if let Some(waits_for) = &self.waits_for {
            write!(f, ", waits for {waits_for}")?;
        }
        for (name, count) in &self.counts {
            write!(f, ", {name} {count}")?;
        }
        if let Some(parent) = &self.parent {
            write!(f, ", of {parent}")?;
        }
        match self.spawned_at {
            Some(location) => write!(f, ", spawned at {location}"),
            None => Ok(()),
        }
    }
}

/// A position among the entities of a source. Entities that come and go while pages are read may be
/// on no page or on two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The part of the source, for example a shard of a table.
    pub part: u64,
    /// The position in that part.
    pub position: u64,
}

/// Which entities of a source are visited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// How many entities are visited at most; of none, there is no next page.
    pub limit: usize,
    /// Where the page begins.
    pub after: Cursor,
    /// Only entities whose name or id contains this text.
    pub contains: Option<String>,
}

impl Query {
    /// Visits the first entities, `limit` at most.
    pub fn first(limit: usize) -> Query {
        Query {
            limit,
            after: Cursor::default(),
            contains: None,
        }
    }

    /// Goes on after a page that ended there.
    pub fn after(mut self, cursor: Cursor) -> Query {
        self.after = cursor;
        self
    }

    /// Visits only entities whose name or id contains this text.
    pub fn containing(mut self, text: impl Into<String>) -> Query {
        self.contains = Some(text.into());
        self
    }

    /// Returns true if the query asks for this entity.
    pub fn accepts(&self, entity: &Entity) -> bool {
        let Some(text) = &self.contains else {
            return true;
        };
        let name = entity.name.as_deref().unwrap_or_default();
        name.contains(text.as_str()) || entity.id.contains(text.as_str())
    }
}

/// One page that is being visited: counts what the query accepts, and says when the page is full.
/// For sources, which hand it every entity they have from the query's cursor on.
pub struct Page<'a> {
    query: &'a Query,
    visit: &'a mut dyn FnMut(Entity),
    left: usize,
}

impl<'a> Page<'a> {
    /// Begins a page.
    pub(crate) fn new(query: &'a Query, visit: &'a mut dyn FnMut(Entity)) -> Page<'a> {
        Page {
            query,
            visit,
            left: query.limit,
        }
    }

    /// Returns where the page begins.
    pub fn after(&self) -> Cursor {
        self.query.after
    }

    /// Returns true if the page takes no further entity.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Takes an entity, unless the query does not ask for it or the page is full.
    pub fn take(&mut self, entity: Entity) {
        if !self.is_full() && self.query.accepts(&entity) {
            self.left -= 1;
            (self.visit)(entity);
        }
    }
}

impl fmt::Debug for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = self.query;
        f.debug_struct("Page").field("query", query).finish()
    }
}
