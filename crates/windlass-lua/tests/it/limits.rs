//! Bad input and faults: the host lives, and others keep their shares.

use std::sync::Arc;
use std::time::Duration;

use windlass_actor::ExitReason;
use windlass_core::sync::{Mutex, clock};
use windlass_lua::mlua::WeakLua;
use windlass_lua::{Interpreter, Script};
use windlass_runtime::task::yield_now;
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

    async fn code_that_nests_too_deeply_is_not_loaded_and_says_so(lua: Interpreter) {
        let text = "
            function main()
                local code, problem = load(('('):rep(1000))
                assert(code == nil and type(problem) == 'string', type(problem))
                return problem
            end";
        let problem = value(&lua, text).await;
        let problem = problem.as_str().unwrap_or_default();
        assert!(problem.contains("C stack overflow"), "{problem}");
    }

    async fn code_that_takes_the_compiler_for_ever_is_not_loaded(lua: Interpreter) {
        // Without the bound this takes a minute that nothing can interrupt.
        let text = "
            function main()
                local chain = 'return a' .. (' or a'):rep(200000)
                local code, problem = load(chain)
                assert(code == nil and problem:find('more than 5000', 1, true), problem)
                local fine = 'local a = 7 return nil' .. (' or a'):rep(4000)
                local quoted = 'return #[[' .. ('or '):rep(100000) .. ']]'
                return load(fine)() + load(quoted)()
            end";
        assert_eq!(value(&lua, text).await, 300_007.into());
    }

    async fn nothing_hides_code_from_the_bound_of_the_compiler(lua: Interpreter) {
        let text = r#"
            function main()
                local chain = 'return a' .. (' and a'):rep(20000)
                local hidden = {
                    '--\r' .. chain, '--[==\r' .. chain, "local x = '\\z\n' " .. chain,
                    "local x = '\\\r\n' " .. chain, "local x = '\\\n\r' " .. chain,
                }
                for i, text in ipairs(hidden) do
                    local code, problem = load(text)
                    assert(code == nil and problem:find('more than 5000', 1, true), i)
                end
                local labels = {}
                for i = 1, 6000 do labels[i] = '::a' .. i .. ':: x = 1 ' end
                local code, problem = load(table.concat(labels))
                assert(code == nil and problem:find('more than 5000', 1, true), problem)
                local names = {}
                for i = 1, 150 do names[i] = 'v' .. i end
                local open = 'local ' .. table.concat(names, ',') .. ' local function f() '
                local nested = open:rep(100) .. ('x=x '):rep(100000) .. ('end '):rep(100)
                local code, problem = load(nested)
                assert(code == nil and problem:find('too many names', 1, true), problem)
                return true
            end"#;
        assert_eq!(value(&lua, text).await, true.into());
    }

    async fn a_script_that_takes_the_compiler_for_ever_is_not_started(lua: Interpreter) {
        let long = [
            format!("function main() end local a if a then {} end", "elseif a then ".repeat(11_000)),
            format!("function main() end while a do {} end", "if a then goto x end ".repeat(11_000)),
            format!("function main() end return a{}", " or a".repeat(11_000)),
        ];
        for text in long {
            let reason = failure(&lua, &text).await;
            assert!(reason.contains("test.lua: the script has more than 10000"), "{reason}");
        }
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
        let said = exit.value.as_str().unwrap_or_default().to_owned();
        assert!(
            said.contains("limit: ") && said.contains("4 tasks"),
            "{said} {}",
            exit.reason
        );
    });
}

/// Code that never comes back by itself.
const SPINNERS: [(&str, &str); 12] = [
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
    (
        "insert",
        "function main() table.insert(setmetatable({}, {__len = function() return math.maxinteger - 1 end}), 1, 2) end",
    ),
    (
        // No metatable is needed: a border is looked for at the powers of two.
        "remove",
        "function main()
            local text = 'return {[math.maxinteger] = 1'
            for bit = 0, 62 do text = text .. ', [' .. (1 << bit) .. '] = 1' end
            local t = load(text .. '}')()
            assert(#t == math.maxinteger)
            table.remove(t, 3)
        end",
    ),
    (
        "move",
        "function main() table.move({}, 1, math.maxinteger - 1, 2) end",
    ),
    (
        "concat",
        "function main()
            local t = setmetatable({}, {__len = function() return math.maxinteger end, __index = function() return '' end})
            while true do pcall(table.concat, t) end
        end",
    ),
    (
        "sort",
        "function main()
            local meta = {__len = function() return 2147483646 end, __index = rawlen, __newindex = rawlen}
            while true do pcall(table.sort, setmetatable({}, meta)) end
        end",
    ),
    (
        "load",
        "function main() while true do load(math.random) end end",
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

/// V2: spinners on all workers; a new task starts within slice + 5 ms (ten times as much here), and
/// they share.
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
            assert_eq!(sum.as_f64(), Some(450_000_015_000_000.0));
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

#[test]
fn a_search_for_a_text_does_not_hold_its_worker() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            local s = ('a'):rep(10000000)
            local wanted = s:sub(1, 5000000) .. 'b'
            return s:find(wanted, 1, true) == nil and s:find(wanted) == nil
        end";
        assert_eq!(value(&lua, text).await, true.into());
    });
}

#[test]
fn a_process_is_killed_in_the_middle_of_a_match() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            // Without the kill it gives up after ten seconds, where the tests are not optimized.
            let text = "function main()
                local s = ('a'):rep(20000000)
                process.register('matcher')
                s:find('(a*)%1%1[b]')
            end";
            let task = lua.spawn_text("matcher", text, []).expect("it starts");
            while lua.vm().host().whereis("matcher").is_none() {
                windlass_runtime::time::sleep(Duration::from_millis(5)).await;
            }
            windlass_runtime::time::sleep(Duration::from_millis(50)).await;
            let begin = clock::now();
            task.kill();
            let exit = task.join().await;
            assert_eq!(exit.reason, ExitReason::Killed);
            let took = Duration::from_nanos(clock::now() - begin);
            assert!(took < Duration::from_secs(4), "{took:?}");
        });
    }
}

/// Lua calls a message handler where the error is thrown. A kill is thrown from a hook, and inside
/// of a hook no other hook is called: a handler that never ends could not be ended.
#[test]
fn a_message_handler_that_never_ends_does_not_survive_a_kill() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            let text = "function main()
                process.register('handler')
                local function forever() while true do end end
                -- Inside of a function of C, where a task cannot yield.
                table.sort({1, 2}, function() xpcall(forever, forever) end)
            end";
            let task = lua.spawn_text("handler", text, []).expect("it starts");
            while lua.vm().host().whereis("handler").is_none() {
                windlass_runtime::time::sleep(Duration::from_millis(5)).await;
            }
            task.kill();
            assert_eq!(task.join().await.reason, ExitReason::Killed);
            assert!(lua.vm().snapshot().stuck.is_empty(), "its thread is free");
        });
    }
}

/// What `xpcall` gives with handlers of a script, as C's gives it.
#[test]
fn a_message_handler_is_called_with_the_error() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            local ok, e, none = xpcall(error, function(e) return e .. '!', 2 end, 'no')
            assert(not ok and e == 'no!' and none == nil)
            local got = table.pack(xpcall(function(...) yield() return ... end, print, 1, nil, 3))
            assert(got.n == 4 and got[1] and got[2] == 1 and got[4] == 3)
            local refused, why = pcall(xpcall, print, 7)
            assert(not refused and why:find('function expected'), why)
            ok, e = xpcall(function() error({}) end, function(e) error(e) end)
            return not ok
        end";
        assert_eq!(value(&lua, text).await, true.into());
    });
}

/// The standard functions that are ours give what C's give, short or long.
#[test]
fn long_calls_of_the_library_give_what_short_ones_give() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = r#"
            local function numbers(n) local t = {} for i = 1, n do t[i] = i end return t end
            local function proxy(t)
                return setmetatable({}, {__index = t, __newindex = t, __len = function() return #t end}), t
            end
            function main()
                assert(string.rep('', math.maxinteger) == '')
                assert(string.rep('', math.maxinteger, '') == '')
                for _, n in ipairs {65537, 100000, 131072} do
                    local s = ('ab'):rep(n, ', ')
                    assert(#s == 4 * n - 2 and s:sub(1, 6) == 'ab, ab' and s:sub(-6) == 'ab, ab')
                    assert(#('x'):rep(n) == n and #string.rep(7, n) == n)
                end
                for _, n in ipairs {10, 30000} do
                    local t = numbers(n)
                    table.insert(t, 1, 'first')
                    assert(#t == n + 1 and t[1] == 'first' and t[2] == 1 and t[n + 1] == n)
                    assert(table.remove(t, 1) == 'first' and #t == n and t[1] == 1 and t[n] == n)
                    assert(table.remove(t, n + 1) == nil and table.remove(t) == n)
                    table.move(t, 1, n - 1, 2)
                    assert(t[1] == 1 and t[2] == 1 and t[n] == n - 1)
                    table.move(t, 2, n, 1)
                    assert(t[1] == 1 and t[2] == 2 and t[n - 1] == n - 1)
                    assert(table.move(numbers(n), 1, n, 1, {})[n] == n)
                    local random, sum = {}, 0
                    for i = 1, n do random[i] = math.random(n) sum = sum + random[i] end
                    table.sort(random)
                    for i = 2, n do assert(random[i - 1] <= random[i]) end
                    table.sort(random, function(a, b) return a > b end)
                    for i = 2, n do assert(random[i - 1] >= random[i]) end
                    for i = 1, n do sum = sum - random[i] end
                    assert(sum == 0)
                end
                local list, behind = proxy(numbers(5))
                table.insert(list, 2, 'x')
                assert(table.concat(behind, ' ') == '1 x 2 3 4 5' and table.concat(list, ' ') == '1 x 2 3 4 5')
                assert(table.concat(list, '-', 2, 3) == 'x-2' and table.concat(list, '', 3, 2) == '')
                assert(table.remove(list, 2) == 'x' and select('#', table.unpack(list)) == 5)
                table.sort(list, function(a, b) return a > b end)
                assert(table.concat(behind, ' ') == '5 4 3 2 1')
                local many = {}
                for i = 1, 1100000 do many[i] = i % 10 end
                assert(#table.concat(many) == 1100000 and #table.concat(many, ',') == 2199999)
                local function problem(...) return tostring(select(2, pcall(...))) end
                assert(problem(table.insert, {1}, 5, 2):find('position out of bounds', 1, true))
                assert(problem(table.insert, proxy {1}, 5, 2):find('position out of bounds', 1, true))
                assert(problem(table.insert, nil, 5):find('table expected, got nil', 1, true))
                local invalid = "invalid value (table) at index 2 in table for 'concat'"
                assert(problem(table.concat, {1, {}}) == invalid)
                assert(problem(table.concat, (proxy {1, {}})):find(invalid, 1, true))
                assert(problem(table.unpack, proxy {}, 1, 1 << 40):find('too many results to unpack', 1, true))
                assert(problem(table.move, proxy {}, -1, math.maxinteger, 2):find('too many elements', 1, true))
                assert(problem(string.rep, 'x', 1 << 30):find('memory', 1, true))
                assert(problem(string.rep, 'x', 1 << 62) == 'resulting string too large')
                local mixed = numbers(30000)
                mixed[29999] = 'x'
                assert(problem(table.sort, mixed):find('^attempt to compare'), problem(table.sort, mixed))
                local ok, e = pcall(function() table.insert(proxy {1}, 5, 2) end)
                assert(e:find('^test.lua:%d+: bad argument'), e)
                local parts = {'return ', 6, '*', '7'}
                assert(load(function() return table.remove(parts, 1) end)() == 42)
                assert(select(2, load(function() error('no text', 0) end)) == 'no text')
                assert(select(2, load((' '):rep(2 << 20))):find('larger than 1 MiB'))
                return true
            end"#;
        assert_eq!(value(&lua, text).await, true.into());
    });
}

/// A slice ends inside of a long call, too, and a task may wait in what it calls.
#[test]
fn long_calls_of_the_library_are_preempted() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            let text = "
                function main()
                    local turns, done = 0, false
                    spawn(function() while not done do turns = turns + 1 yield() end end)
                    local t = {}
                    for i = 1, 500000 do t[i] = i end
                    local before = turns
                    table.sort(t, function(a, b) return a > b end)
                    local sorting = turns - before
                    table.sort({2, 1}, function(a, b) return a < b end)
                    local slow = setmetatable({}, {__len = function() return 3 end, __index = function() sleep(0) return 'x' end})
                    done = true
                    return sorting > 0 and table.concat(slow) == 'xxx'
                end";
            assert_eq!(value(&lua, text).await, true.into());
        });
    }
}

/// A function of the host that does not return keeps its thread; the process is named, and the
/// others go on.
#[test]
fn a_function_of_the_host_that_does_not_return_is_named() {
    use std::sync::mpsc::channel;

    for placement in BOTH {
        real(|| async move {
            let vm = Vm::builder()
                .placement(placement)
                .workers(2)
                .patience(Duration::from_millis(20))
                .build()
                .expect("a VM");
            let (release, released) = channel::<()>();
            let released = std::sync::Arc::new(windlass_core::sync::Mutex::new(released));
            let lua = Interpreter::builder(&vm)
                .setup(move |lua| {
                    let released = released.clone();
                    let hang = lua.create_function(move |_, ()| {
                        // Until the other end is dropped.
                        let _ = released.lock().recv();
                        Ok(())
                    })?;
                    lua.globals().set("hang", hang)
                })
                .build()
                .expect("an interpreter");
            let text = "function main() hang() return 'returned' end";
            let stuck: Vec<_> = (0..2)
                .map(|_| lua.spawn_text("hang.lua", text, []).expect("it starts"))
                .collect();
            for _ in 0..10 {
                assert_eq!(value(&lua, "function main() return 1 end").await, 1.into());
            }
            let names = vm.snapshot().stuck;
            assert!(!names.is_empty());
            assert!(
                names.iter().all(|name| name.starts_with("hang.lua {")),
                "{names:?}"
            );
            drop(release);
            for task in stuck {
                assert_eq!(task.join().await.value, "returned".into());
            }
        });
    }
}

#[test]
fn a_mailbox_is_full_by_bytes_too() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            local s, sent = ('x'):rep(30000000), 0
            while true do
                local ok, why = send(process.self(), 'm', s)
                if not ok then return sent .. ' ' .. why end
                sent = sent + 1
            end
        end";
        assert_eq!(value(&lua, text).await, "2 full".into());
        let text =
            "function main() return select(2, send(process.self(), 'm', ('x'):rep(70000000))) end";
        assert_eq!(value(&lua, text).await, "too_large".into());
    });
}

/// Counts the bytes that the allocator of each Lua state has given out, while all processes wait.
#[test]
fn a_process_that_only_waits_takes_little_memory() {
    const PROCESSES: usize = 4;
    for placement in BOTH {
        real(|| async move {
            let vm = Vm::builder().placement(placement).workers(2);
            let vm = vm.build().expect("a VM");
            let states = Arc::<Mutex<Vec<WeakLua>>>::default();
            let seen = states.clone();
            let lua = Interpreter::builder(&vm)
                .setup(move |lua| {
                    seen.lock().push(lua.weak());
                    Ok(())
                })
                .build()
                .expect("an interpreter");
            let idle = Script::text("idle.lua", "function main() receive() end");
            let tasks: Vec<_> = (0..PROCESSES)
                .map(|_| lua.spawn(idle.clone(), []).expect("it starts"))
                .collect();
            while states.lock().len() < PROCESSES || vm.snapshot().ready_or_running > 0 {
                yield_now().await;
            }
            for state in &*states.lock() {
                let used = state.try_upgrade().expect("it waits").used_memory();
                assert!(used < IDLE_BYTES, "{used} bytes");
            }
            for task in tasks {
                task.kill();
            }
        });
    }
}

/// The most that the Lua state of a process takes that waits and has done nothing else. It took
/// 61,000 when the core of the prelude contained tasks, errors and printing.
const IDLE_BYTES: usize = 42_000;

#[test]
fn channels_are_loaded_with_the_first() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            collectgarbage()
            local before = collectgarbage('count')
            channel.new()
            collectgarbage()
            return collectgarbage('count') - before
        end";
        let more = value(&lua, text).await.as_f64().unwrap_or_default();
        assert!(more > 5.0, "{more} KiB");
    });
}

#[test]
fn libraries_are_all_there_when_they_are_looked_into() {
    real(|| async {
        let lua = interpreter(Placement::Pool);
        let text = "function main()
            fs.own = 1
            local names = {}
            for name in pairs(fs) do names[#names + 1] = name end
            table.sort(names)
            assert(table.concat(names, ' ') == 'append list mkdir own read remove stat write')
            assert(getmetatable(fs) == nil and fs.nothing == nil and process.nothing == nil)
            for _, library in ipairs {http, json, log, process, supervisor, timer} do
                local count = 0
                for _ in pairs(library) do count = count + 1 end
                assert(count >= 3)
            end
            return process.script
        end";
        assert_eq!(value(&lua, text).await, "test.lua".into());
    });
}
