//! Lua as a component of a graph.

use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_graph::component::{Descriptor, Registry};
use windlass_graph::model::BoundaryRole;
use windlass_graph::{LoadOptions, Prepared, RunOptions, RunResult, load};
use windlass_runtime::Runtime;

fn registry() -> Registry {
    let mut registry = Registry::built_in();
    windlass_lua::register(&mut registry);
    registry
}

/// A graph with one Lua component between an input and an output.
fn graph(script: &str, execution: &str, lane: &str) -> String {
    let script: String = script
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    format!(
        "schema_version: 2
graph: {{name: test}}
lanes: {{main: {{{lane}}}}}
components:
  - {{id: in, type: windlass.boundary.Input, execution: {{lane: main}}}}
  - id: lua
    type: windlass.lua
    config:
      ports: {{inputs: [a], outputs: [b]}}
      script: |
{script}    trigger_policy: {{type: any_input, input: a}}
    execution: {{lane: main{execution}}}
  - {{id: out, type: windlass.boundary.Output, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: ab, from: in.out, to: lua.a, kind: immediate}}
  - {{id: bc, from: lua.b, to: out.in, kind: immediate}}
"
    )
}

fn run(text: &str, steps: u64) -> RunResult {
    let loaded = load(text, &LoadOptions::default()).expect("it is well-formed");
    let prepared = Prepared::new(loaded.graph, registry()).expect("it compiles");
    Runtime::new()
        .expect("a runtime")
        .block_on(prepared.run(RunOptions::steps(steps)))
}

fn delivered(result: &RunResult) -> f64 {
    result
        .metrics
        .of("runtime.channel.delivery_count", "bc")
        .unwrap_or_default()
}

const LANES: [&str; 2] = ["type: event_loop", "type: thread_pool, max_threads: 2"];

#[test]
fn a_script_keeps_its_state_and_publishes() {
    for lane in LANES {
        let script = "
local n = 0
function execute(inputs)
  assert(inputs.a == inputs[1].value and inputs[1].port == 'a')
  n = n + 1
  if n % 2 == 0 then publish('b', {count = n, text = inputs.a}) end
end";
        let result = run(&graph(script, "", lane), 10);
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(delivered(&result), 5.0);
    }
}

#[test]
fn errors_have_their_place() {
    let cases = [
        (
            "function execute()\n  error('boom')\nend",
            "lua.lua:3: boom",
        ),
        (
            "function execute() publish('c', 1) end",
            "there is no output \"c\": the outputs are b",
        ),
        (
            "function execute() publish('b', print) end",
            "a function cannot be sent",
        ),
        ("function execute() sleep(1) end", "a component cannot wait"),
        ("function execute() spawn(print) end", "tasks already"),
        ("x = 1", "no function `execute`"),
        ("function execute(", "lua.lua:"),
    ];
    for (script, expected) in cases {
        let result = run(&graph(&format!("\n{script}"), "", LANES[0]), 1);
        let said = result
            .errors
            .first()
            .map(|error| error.message.clone())
            .unwrap_or_default();
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn an_endless_invocation_is_ended_by_force() {
    for lane in LANES {
        for spin in [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "table.sort({3, 2, 1}, function() while true do end end)",
            "table.move({}, 1, math.maxinteger - 1, 2)",
            "table.insert(setmetatable({}, {__len = function() return math.maxinteger - 1 end}), 1, 2)",
        ] {
            let script = format!(
                "
local n = 0
function execute(inputs)
  n = n + 1
  if n == 2 then {spin} end
  publish('b', n)
end"
            );
            let result = run(
                &graph(&script, ", timeout_ms: 30, on_error: continue", lane),
                5,
            );
            assert_eq!(delivered(&result), 4.0, "{spin}: {:?}", result.errors);
            let said = &result.errors[0].message;
            assert!(said.contains("was ended after 30 ms"), "{said}");
        }
    }
}

#[test]
fn every_run_is_the_same() {
    let script = "
function execute(inputs)
  local keys = {}
  for k in pairs({x = 1, y = 2, z = 3, [1] = 4}) do keys[#keys + 1] = tostring(k) end
  publish('b', {math.random(), table.concat(keys), tostring({}), now(), os.date(), os.time(), os.time({year = 2000, month = 1, day = 1})})
end";
    let text = graph(script, "", LANES[0]).replace("windlass.boundary.Output", "test.sink");
    let run = || {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (to, mut registry) = (said.clone(), registry());
        let sink = Descriptor::new().input("in").boundary(BoundaryRole::Output);
        registry.function("test.sink", sink, move |invocation| {
            let payloads = invocation
                .inputs()
                .iter()
                .map(|input| format!("{:?}", input.payload()));
            to.lock().extend(payloads);
            Ok(())
        });
        let loaded = load(&text, &LoadOptions::default()).expect("it is well-formed");
        let prepared = Prepared::new(loaded.graph, registry).expect("it compiles");
        let runtime = Runtime::new().expect("a runtime");
        let result = runtime.block_on(prepared.run(RunOptions::steps(20)));
        assert!(result.is_ok(), "{:?}", result.errors);
        std::mem::take(&mut *said.lock())
    };
    let first = run();
    assert_eq!(first.len(), 20);
    assert_eq!(first, run());
}

#[test]
fn what_is_published_has_to_fit_into_the_memory_of_the_component() {
    // Two texts for the script, two for the message, and eight megabytes in all.
    let script = "function execute()
        local x, y = string.rep('x', 2300000), string.rep('y', 2300000)
        publish('used', {x, y})
      end";
    let result = run(&with_spare_output(&script.replace('\n', " ")), 1);
    let said = &result.errors[0].message;
    assert!(said.contains("takes more than"), "{said}");
}

/// A Lua component with the outputs `used`, at which an edge begins, and `spare`, at which none
/// does.
fn with_spare_output(script: &str) -> String {
    format!(
        "schema_version: 2
graph: {{name: test, kind: internal_test}}
lanes: {{main: {{type: event_loop}}}}
components:
  - id: lua
    type: windlass.lua
    execution: {{lane: main}}
    config:
      memory_mb: 8
      ports: {{inputs: [], outputs: [used, spare]}}
      script: \"{script}\"
  - {{id: out, type: windlass.boundary.Output, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: bc, from: lua.used, to: out.in, kind: immediate}}
"
    )
}

fn unconnected(result: &RunResult) -> Option<f64> {
    let name = "runtime.component.unconnected_publish_count";
    result.metrics.of(name, "lua")
}

#[test]
fn what_is_published_at_a_declared_output_without_an_edge_is_dropped_and_counted() {
    let script = "function execute() publish('used', 1) publish('spare', 2) end";
    let result = run(&with_spare_output(script), 3);
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(delivered(&result), 3.0);
    assert_eq!(unconnected(&result), Some(3.0));
    // What cannot be published is a mistake at any output, and so is an output that is not
    // declared.
    let script = "function execute() publish('spare', print) end";
    let result = run(&with_spare_output(script), 1);
    let said = &result.errors[0].message;
    assert!(said.contains("function"), "{said}");
    let script = "function execute() publish('other', 1) end";
    let result = run(&with_spare_output(script), 1);
    let said = &result.errors[0].message;
    assert!(
        said.contains("there is no output \"other\": the outputs are used, spare"),
        "{said}"
    );
}

/// It has 22 tables, and would be four million values if each way to one were written down.
#[test]
fn a_table_that_goes_nowhere_takes_what_it_is_and_not_what_it_would_be() {
    let script = "function execute()
        local t = {}
        for _ = 1, 22 do t = {t, t} end
        publish('spare', t)
      end";
    let result = run(&with_spare_output(&script.replace('\n', " ")), 3);
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(unconnected(&result), Some(3.0));
    // The same where it arrives: what is shared in the script is shared on the edge.
    let result = run(
        &with_spare_output(&script.replace('\n', " ").replace("spare", "used")),
        1,
    );
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(delivered(&result), 1.0);
}
