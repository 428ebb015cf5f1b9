//! The examples, and what the guide shows.

use std::path::Path;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_lua::mlua::Lua;
use windlass_lua::{Interpreter, Printed};
use windlass_vm::Vm;

use crate::support::{BOTH, real};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lua");
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lua.md");

/// Runs an example to its end on both placements: it must give 0, and print this.
fn prints(name: &str, expected: &str) {
    for placement in BOTH {
        let printed = Arc::new(Mutex::new(Vec::new()));
        let to = printed.clone();
        real(|| async move {
            let vm = Vm::builder().placement(placement).workers(2).build();
            let lua = Interpreter::builder(&vm.expect("a VM"))
                .output(move |said: Printed<'_>| to.lock().push(said.text.to_owned()))
                .build()
                .expect("an interpreter");
            let task = lua
                .spawn_file(Path::new(FOLDER).join(name), [])
                .expect("it starts");
            let exit = task.join().await;
            assert!(exit.reason.is_normal(), "{}", exit.reason);
            assert_eq!(exit.value, 0.into());
        });
        let printed = printed.lock().join("\n");
        assert_eq!(printed, expected.trim(), "on {placement:?}");
    }
}

#[test]
fn the_chat_says_what_was_said() {
    prints(
        "chat/main.lua",
        "
ann joins
bob joins
cal joins
ann: Now we are three. Bob, is the winch ready?
bob: Ready. Which button was it?
ann: Not the red one!
cal is gone (error)
ann: That was the red one.
bob leaves
ann leaves
ann heard 9 lines
bob heard 7 lines
cal failed: cal has pressed the red button
lines in the room: 10",
    );
}

#[test]
fn the_pool_does_all_that_can_be_done() {
    prints(
        "pool/main.lua",
        "
job  1:  25 primes, try 1
job  2:  46 primes, try 1
job  3:  62 primes, try 1
job  4:  78 primes, try 2
job  5:  95 primes, try 1
job  6: 109 primes, try 1
job  7: given up
job  8: 139 primes, try 2
job  9: 154 primes, try 1
job 10: 168 primes, try 1
job 11: 184 primes, try 1
job 12: 196 primes, try 2
11 done, 1 given up, 6 crashes",
    );
}

#[test]
fn what_the_guide_shows_compiles() {
    let guide = std::fs::read_to_string(GUIDE).expect("the guide");
    let blocks: Vec<&str> = guide
        .split("```lua\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect();
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    let lua = Lua::new();
    for block in blocks {
        if let Err(error) = lua.load(block).set_name("guide").into_function() {
            panic!("{error}\n{block}");
        }
    }
}

#[test]
fn embedding_as_in_the_guide() {
    real(|| async {
        use windlass_lua::Sandbox;
        let vm = Vm::builder().build().expect("a VM");
        let lua = Interpreter::builder(&vm)
            .sandbox(Sandbox::new().allow_net("api.example.org"))
            .setup(|lua| {
                lua.globals()
                    .set("twice", lua.create_function(|_, n: i64| Ok(2 * n))?)
            })
            .blocking("read_sensor", |_| Ok(21.5.into()))
            .build()
            .expect("an interpreter");
        let text = "function main(n) return twice(n) + blocking('read_sensor') end";
        let task = lua.spawn_text("app", text, [4.into()]).expect("it starts");
        assert_eq!(task.join().await.value, 29.5.into());
    });
}
