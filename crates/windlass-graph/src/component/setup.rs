//! What a component is configured with: its values and its ports.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use windlass_sync::lock::Notify;

use super::{Door, Failure, Outside};
use windlass_plan::compile::{NodePlan, PortPlan};
use windlass_plan::model::{Config, Graph};
use windlass_value::{Data, Payload};

/// What a component is configured with.
#[derive(Debug)]
pub struct Setup<'a> {
    pub(crate) id: &'a str,
    pub(crate) config: &'a Config,
    pub(crate) node: &'a NodePlan,
    pub(crate) graph: &'a Graph,
    pub(crate) bell: &'a Arc<Notify>,
    /// Made when it is asked for.
    pub(crate) door: &'a mut Option<Arc<Door>>,
}

/// An input port of a component, found by `Setup::input`. The default is connected to nothing.
pub struct Input<T = Payload> {
    pub(crate) place: u16,
    of: PhantomData<fn() -> T>,
}

/// An output port of a component, found by `Setup::output`. The default is connected to nothing.
pub struct Output<T = Payload> {
    pub(crate) place: u16,
    of: PhantomData<fn(T)>,
}

/// The place of a port at which there is no edge.
pub(crate) const UNCONNECTED: u16 = u16::MAX;

impl<'a> Setup<'a> {
    /// The component's id.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// Returns the `config` of the component.
    pub fn config(&self) -> &'a Config {
        self.config
    }

    /// The graph it is part of.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The input port of this name; if no edge ends there, it never has anything.
    pub fn input<T: Data>(&self, name: &str) -> Result<Input<T>, Failure> {
        Ok(Input {
            place: place(&self.node.inputs, name)?,
            of: PhantomData,
        })
    }

    /// The output port of this name; if no edge begins there, what is published goes nowhere.
    pub fn output<T: Data>(&self, name: &str) -> Result<Output<T>, Failure> {
        Ok(Output {
            place: place(&self.node.outputs, name)?,
            of: PhantomData,
        })
    }

    /// A door to the world outside: for a component that has a task of its own, which brings
    /// things.
    ///
    /// Such a component runs when something has come, besides what its trigger says. If that is
    /// `manual`, on a lane that follows no real clock, it runs only then, or when messages have
    /// come; not in every epoch.
    pub fn outside(&mut self) -> Outside {
        self.door.get_or_insert_with(|| Door::new(self.bell)).open()
    }

    /// The names of the output ports at which edges begin.
    pub fn outputs(&self) -> impl Iterator<Item = &'a str> {
        self.node.outputs.iter().map(|port| port.name.as_str())
    }

    /// The names of the input ports at which edges end.
    pub fn inputs(&self) -> impl Iterator<Item = &'a str> {
        self.node.inputs.iter().map(|port| port.name.as_str())
    }
}

fn place(ports: &[PortPlan], name: &str) -> Result<u16, Failure> {
    match ports.iter().position(|port| port.name == name) {
        Some(place) => u16::try_from(place)
            .ok()
            .filter(|&place| place != UNCONNECTED)
            .ok_or_else(|| Failure::new("a component can have 65,535 ports at most")),
        None => Ok(UNCONNECTED),
    }
}

macro_rules! port {
    ($( $Port:ident )+) => { $(
        impl<T> Clone for $Port<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $Port<T> {}
        impl<T> Default for $Port<T> {
            fn default() -> Self {
                $Port { place: UNCONNECTED, of: PhantomData }
            }
        }
        impl<T> fmt::Debug for $Port<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.place {
                    UNCONNECTED => f.write_str(concat!(stringify!($Port), "(unconnected)")),
                    place => write!(f, concat!(stringify!($Port), "({})"), place),
                }
            }
        }
        impl<T> $Port<T> {
            /// Whether there is an edge at it.
            pub fn is_connected(self) -> bool {
                self.place != UNCONNECTED
            }
        }
    )+ };
}

port!(Input Output);
