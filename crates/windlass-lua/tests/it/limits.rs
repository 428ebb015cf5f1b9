//! Bad input and faults: the host lives, and others keep their shares.

use std::time::Duration;

use windlass_core::sync::clock;
use windlass_lua::{Interpreter, Script};
use windlass_process::ExitReason;
use windlass_vm::{Limits, Placement, SpawnOptions, Vm};

use crate::support::{BOTH, everywhere, failure, interpreter, real, run, value};

everywhere! {
    async fn deep_recursion_is_an_error(lua: Interpreter) {
        let reason = failure(&lua, "local function f() return 1 + f() end function main() f() end").await;
        assert!(reason.contains("stack overflow"), "{reason}");
        let nested = "
            local function nest(n) return coroutine.wrap(function() return nest(n + 1) end)() end
            function main() return nest(1) end";
        let reason = failure(&lua, nested).await;
        assert!(reason.contains("C stack overflow"), "{reason}");
    }

    async fn the_sandbox_has_no_way_out(lua: Interpreter) {
        let text = "
            function main()
                assert(io == nil and dofile == nil and loadfile == nil and os.execute == nil and os.exit == nil)
                assert(debug.sethook == nil and debug.getregistry == nil and package == nil)
                assert(getmetatable('') == nil)
                for _, made in ipairs {spawn(print), channel.new(), mutex.new(), semaphore.new(1), process.self(), buffer('x')} do
                    assert(type(getmetatable(made)) ~= 'table' and (type(made) == 'userdata' or made.__index == nil))
                end
                local ok, e = pcall(load, string.dump(function() end), 'x', 'b')
                assert(not ok and tostring(e):find('bytecode'), e)
                assert(load(string.dump(function() end)) == nil)
                local ok, e = pcall(setmetatable, {}, {__gc = function() end})
                assert(not ok and tostring(e):find('__gc'), e)
                local ok, e = pcall(os.getenv, 'PATH')
                assert(not ok and e.kind == 'sandbox')
                local ok, e = pcall(fs.read, '/etc/passwd')
                assert(not ok and tostring(e):find('sandbox'), e)
                local ok, e = pcall(http.get, 'http://127.0.0.1:1/')
                assert(not ok and e.kind == 'sandbox', e)
                assert(load('return x', 'c', 't', {x = 5})() == 5)
                assert(load('return dofile')() == nil and load('return _G')() == _G and load('return _ENV')() == _G)
                return load('return 1 + 1')()
            end";
        assert_eq!(value(&lua, text).await, 2.into());
    }

    async fn errors_across_functions_of_the_host_are_errors(lua: Interpreter) {
        let text = "
            function main()
                local ok, e = pcall(string.gsub, 'abc', '.', function() error({mine = true}) end)
                assert(not ok and e.mine)
                local ok, e = pcall(table.sort, {1, 2}, function() error('in the comparison') end)
                assert(not ok and e:find('in the comparison'))
                local t = setmetatable({}, {__index = function(_, k) error('no ' .. k) end})
                local ok, e = pcall(function() return t.x end)
                return not ok and e:find('no x') ~= nil
            end";
        assert_eq!(value(&lua, text).await, true.into());
    }
}

#[test]
fn a_memory_bomb_ends_its_own_process() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            let bombs = [
                "function main() local t = {} for i = 1, 1e9 do t[i] = {i} end end",
                "function main() local s = 'x' while true do s = s .. s end end",
                "function main() return ('x'):rep(1 << 40) end",
            ];
            for bomb in bombs {
                let limits = Limits::NONE.memory(16 << 20);
                let options = SpawnOptions::new().limits(limits);
                let task = lua.spawn_with(Script::text("bomb", bomb), [], options);
                let exit = task.expect("it starts").join().await;
                let reason = exit.reason.to_string();
                assert!(
                    reason.contains("memory") || reason.contains("too large"),
                    "{reason}"
                );
            }
            assert_eq!(value(&lua, "function main() return 1 end").await, 1.into());
        });
    }
}

#[test]
fn a_process_has_a_limit_of_tasks() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            for i = 1, 3 do spawn(function() sleep(100) end) end
            local ok, e = pcall(spawn, function() end)
            return e.kind .. ': ' .. e.message
        end";
        let options = SpawnOptions::new().limits(Limits::NONE.tasks(4));
        let task = lua
            .spawn_with(Script::text("many.lua", text), [], options)
            .expect("it starts");
        let exit = task.join().await;
        let said = exit.value.as_text().unwrap_or_default().to_owned();
        assert!(
            said.contains("limit: ") && said.contains("4 tasks"),
            "{said} {}",
            exit.reason
        );
    });
}

/// Code that never comes back by itself.
const SPINNERS: [(&str, &str); 6] = [
    ("loop", "function main() while true do end end"),
    (
        "pcall",
        "function main() while true do pcall(function() while true do end end) end end",
    ),
    (
        "coroutine",
        "function main() coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)() end",
    ),
    (
        "comparison",
        "function main() table.sort({3, 2, 1}, function() while true do end end) end",
    ),
    (
        "metamethod",
        "function main() local t = setmetatable({}, {__index = function() while true do end end}) return t.x end",
    ),
    (
        // A queue of the prelude's own that has no end any more.
        "queue",
        "function main() local c = channel.new() c.receivers.last = math.maxinteger - 1 c:receive(0.001) end",
    ),
];

#[test]
fn code_that_never_comes_back_is_killed() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            for (name, text) in SPINNERS {
                let task = lua.spawn_text(name, text, []).expect("it starts");
                while task.cpu_time() == Duration::ZERO && lua.vm().snapshot().active_vm_tasks == 0
                {
                    windlass_runtime::task::yield_now().await;
                }
                task.kill();
                let exit = task.join().await;
                assert_eq!(exit.reason, ExitReason::Killed, "{name}");
                while lua.vm().snapshot().active_vm_tasks > 0 {
                    windlass_runtime::task::yield_now().await;
                }
            }
        });
    }
}

#[test]
fn code_that_never_comes_back_uses_up_its_time() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            for (name, text) in SPINNERS {
                let options =
                    SpawnOptions::new().limits(Limits::NONE.cpu(Duration::from_millis(40)));
                let task = lua
                    .spawn_with(Script::text(name, text), [], options)
                    .expect("it starts");
                let exit = task.join().await;
                let reason = exit.reason.to_string();
                assert!(reason.contains("time"), "{name}: {reason}");
            }
        });
    }
}

/// V2: spinners on all workers; a new task starts within slice + 5 ms (ten times as much here), and they share.
#[test]
fn v2_spinners_share_and_let_others_in_in_real_time() {
    for placement in BOTH {
        real(|| async move {
            let vm = Vm::builder()
                .placement(placement)
                .workers(2)
                .build()
                .expect("a VM");
            let lua = Interpreter::builder(&vm).build().expect("an interpreter");
            let spinners: Vec<_> = (0..4)
                .map(|_| {
                    lua.spawn_text("spin", SPINNERS[0].1, [])
                        .expect("it starts")
                })
                .collect();
            let all_run = || {
                spinners
                    .iter()
                    .all(|task| task.cpu_time() > Duration::from_millis(20))
            };
            while !all_run() {
                windlass_runtime::task::yield_now().await;
            }
            let began = clock::now();
            let late = lua
                .spawn_text("late", "function main() return now() end", [])
                .expect("it starts");
            late.join().await;
            let took = Duration::from_nanos(clock::now() - began);
            assert!(took < Duration::from_millis(10 * (10 + 5) * 3), "{took:?}");
            let before: Vec<_> = spinners.iter().map(|task| task.cpu_time()).collect();
            windlass_runtime::time::sleep(Duration::from_millis(800)).await;
            let used: Vec<_> = spinners
                .iter()
                .zip(&before)
                .map(|(task, before)| task.cpu_time() - *before)
                .collect();
            let (least, most) = (used.iter().min(), used.iter().max());
            let (least, most) = (
                least.expect("four").as_secs_f64(),
                most.expect("four").as_secs_f64(),
            );
            assert!(least > most * 0.4, "{used:?}");
            for task in &spinners {
                task.kill();
            }
            // A long loop completes.
            let sum = value(
                &lua,
                "function main() local n = 0 for i = 1, 3e7 do n = n + i end return n end",
            )
            .await;
            assert_eq!(sum.as_float(), Some(450_000_015_000_000.0));
        });
    }
}

#[test]
fn a_pattern_that_takes_forever_is_an_error() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main() return (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b') end";
        let reason = failure(&lua, text).await;
        assert!(reason.contains("pattern"), "{reason}");
        let exit = run(
            &lua,
            "function main() return ('hello world'):gsub('o', '0') end",
        )
        .await;
        assert_eq!(exit.value, "hell0 w0rld".into());
    });
}
