//! Ending an invocation from outside.

/// Ends the invocation of a component that can be preempted, such as a guest in a VM.
///
/// ```
/// use std::sync::Arc;
/// use windlass_core::sync::atomic::{AtomicBool, Ordering};
/// use windlass_graph::component::{Component, Descriptor, Failure, Interrupt, Invocation};
///
/// /// Goes on for ever, unless it is interrupted.
/// #[derive(Default)]
/// struct Endless(Arc<Asked>);
///
/// #[derive(Default)]
/// struct Asked(AtomicBool);
///
/// impl Interrupt for Asked {
///     fn interrupt(&self) {
///         self.0.store(true, Ordering::Relaxed);
///     }
///     fn forget(&self) {
///         self.0.store(false, Ordering::Relaxed);
///     }
/// }
///
/// impl Component for Endless {
///     fn describe() -> Descriptor {
///         Descriptor::new().preemptible()
///     }
///     fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
///         while !self.0.0.load(Ordering::Relaxed) {
///             std::hint::spin_loop();
///         }
///         Err(Failure::new("it was interrupted"))
///     }
///     fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
///         Some(self.0.clone())
///     }
/// }
/// ```
pub trait Interrupt: Send + Sync {
    /// Makes the invocation that runs now end soon, with a failure. Called from another thread,
    /// perhaps a moment too late: when `execute` has just returned, or has not got to its first
    /// line. It must not block: the end of the invocation waits for it.
    fn interrupt(&self);

    /// Forgets the interrupt. Called once after each `interrupt`, when the invocation that it was
    /// for has ended and before the next begins; so one that came too late does not hit the next.
    /// One that `execute` forgets when it begins may be one that is meant for it, and would be
    /// lost: leave it to this.
    fn forget(&self) {}
}
