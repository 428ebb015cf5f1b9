//! What a message costs in memory: nothing, once the run is warm.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use windlass_graph::RunOptions;

use super::stage::Stage;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: says the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: says the caller.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: says the caller.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Edges of every kind and mode, fan-out and fan-in, and a loop: four messages an epoch at each.
const GRAPH: &str = "
components:
  - {id: in, type: windlass.boundary.FrameInput, execution: {lane: main}}
  - {id: one, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: two, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: both, type: windlass.transform.Join, trigger_policy: {type: all_inputs, inputs: [left, right]}, execution: {lane: main}}
  - {id: out, type: windlass.boundary.Output, trigger_policy: {type: batch, input: in, batch_size: 2}, execution: {lane: main}}
  - {id: later, type: windlass.boundary.Output, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: state, type: windlass.boundary.Output, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: self, type: windlass.transform.Identity, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e1, from: in.out, to: one.in, kind: immediate, policy: {mode: queue, capacity: 4}}
  - {id: e2, from: in.out, to: two.in, kind: immediate}
  - {id: e3, from: one.out, to: both.left, kind: immediate}
  - {id: e4, from: two.out, to: both.right, kind: immediate, policy: {mode: latched}}
  - {id: e5, from: both.out, to: out.in, kind: immediate, policy: {mode: queue, capacity: 4}}
  - {id: e6, from: one.out, to: later.in, kind: async, policy: {max_inflight: 3, overflow: reject}}
  - {id: e7, from: two.out, to: state.in, kind: state, policy: {mode: previous_tick}}
  - {id: e8, from: in.out, to: self.in, kind: immediate}
";

#[test]
fn a_message_allocates_nothing_once_the_run_is_warm() {
    let stage = Stage::new(GRAPH);
    let prepared = stage.prepared();
    let allocated = |epochs: u64| {
        let mut options = RunOptions::steps(epochs);
        options.order_capacity = 0;
        let before = ALLOCATED.with(Cell::get);
        let result = windlass_runtime::Runtime::simulated(1).block_on(prepared.run(options));
        assert!(result.is_ok(), "{:?}", result.errors);
        assert!(result.metrics.sum("runtime.channel.delivery_count") > epochs as f64 * 6.0);
        ALLOCATED.with(Cell::get) - before
    };
    let (short, long) = (allocated(100), allocated(10_100));
    // The simulation records its turns, now and then in a larger buffer; 70,000 messages leave no
    // other trace.
    assert!(long < short + 200, "{short} and {long}");
}
