//! Tasks inside one Lua process.

use std::time::Duration;

use windlass_lua::Interpreter;
use windlass_runtime::time::timeout;
use windlass_value::Payload;
use windlass_vm::Vm;

use crate::support::{BOTH, everywhere, failure, interpreter, real, value};

everywhere! {
    async fn a_script_ends_with_what_main_returns(lua: Interpreter) {
        assert_eq!(value(&lua, "function main() return 6 * 7 end").await, 42.into());
        assert_eq!(value(&lua, "x = 1").await, Payload::Nil);
    }

    async fn tasks_are_spawned_and_awaited(lua: Interpreter) {
        let text = "
            function main()
                local t = spawn(function(a, b) sleep(0.001) return a + b, 'more' end, 1, 2)
                local sum, more = await(t)
                return {sum, more, t:status()}
            end";
        let expected = Payload::List(vec![3.into(), "more".into(), "done".into()].into());
        assert_eq!(value(&lua, text).await, expected);
    }

    async fn a_failed_task_is_its_awaiters_error(lua: Interpreter) {
        let text = "
            function main()
                local t = spawn(function() error({code = 7}) end)
                local ok, e = pcall(await, t)
                return ok == false and e.code
            end";
        assert_eq!(value(&lua, text).await, 7.into());
    }

    async fn channels_hand_over_in_the_order_of_arrival(lua: Interpreter) {
        let text = "
            function main()
                local ch, got = channel.new(), {}
                local tasks = {}
                for i = 1, 5 do
                    tasks[i] = spawn(function() local v = ch:receive() got[#got + 1] = i .. '=' .. v end)
                end
                yield()
                for i = 1, 5 do ch:send(i * 10) end
                for i = 1, 5 do await(tasks[i]) end
                return table.concat(got, ' ')
            end";
        assert_eq!(value(&lua, text).await, "1=10 2=20 3=30 4=40 5=50".into());
    }

    async fn a_closed_channel_wakes_all_and_gives_what_it_has(lua: Interpreter) {
        let text = "
            function main()
                local ch = channel.new(2)
                ch:send(1) ch:send(2)
                ch:close()
                local ok, e = pcall(ch.send, ch, 3)
                local empty = channel.new()
                local waiting = spawn(function() return empty:receive() == nil end)
                yield()
                empty:close()
                return {ch:receive(), ch:receive(), ch:receive() == nil, ok, e.kind, await(waiting)}
            end";
        let expected = vec![1.into(), 2.into(), true.into(), false.into(), "closed".into(), true.into()];
        assert_eq!(value(&lua, text).await, Payload::List(expected.into()));
    }

    async fn select_takes_the_first_that_can_go_on(lua: Interpreter) {
        let text = "
            function main()
                local a, b, c = channel.new(), channel.new(), channel.new(1)
                assert(channel.select({a, b}, 0) == nil)
                local which, why = channel.select({a, b}, 0.001)
                assert(which == nil and why == 'timeout')
                assert(channel.select({a, {c, 'x'}}) == 2)
                assert(c:receive() == 'x')
                spawn(function() sleep(0.001) b:send('from b') end)
                local place, got = channel.select({a, b}, 10)
                assert(place == 2 and got == 'from b')
                -- Nobody stands in line any more.
                local t = spawn(function() return a:receive() end)
                yield()
                a:send('for the task')
                return await(t)
            end";
        assert_eq!(value(&lua, text).await, "for the task".into());
    }

    async fn a_mutex_goes_to_who_waits_longest_and_back_at_the_end(lua: Interpreter) {
        let text = "
            function main()
                local m, order = mutex.new(), {}
                m:lock()
                assert(not pcall(m.lock, m), 'relock')
                local tasks = {}
                for i = 1, 3 do
                    tasks[i] = spawn(function() m:lock() order[#order + 1] = i if i == 2 then error('dies') end m:unlock() end)
                end
                yield()
                m:unlock()
                for i = 1, 3 do pcall(await, tasks[i]) end
                assert(not pcall(m.unlock, m), 'not mine')
                return table.concat(order, ',') .. m:with(function(x) return x end, '!')
            end";
        assert_eq!(value(&lua, text).await, "1,2,3!".into());
    }

    async fn a_semaphore_keeps_its_permits(lua: Interpreter) {
        let text = "
            function main()
                local s, most, now = semaphore.new(2), 0, 0
                local tasks = {}
                for i = 1, 6 do
                    tasks[i] = spawn(function()
                        s:acquire()
                        now = now + 1
                        most = math.max(most, now)
                        sleep(0.001)
                        now = now - 1
                        if i % 2 == 0 then s:release() end
                        -- The others end with their permit.
                    end)
                end
                for i = 1, 6 do await(tasks[i]) end
                s:acquire(2)
                assert(not pcall(s.acquire, s, 3))
                return most
            end";
        assert_eq!(value(&lua, text).await, 2.into());
    }

    async fn arguments_that_make_no_sense_are_refused_where_they_are(lua: Interpreter) {
        let text = "
            local calls = {
                function() semaphore.new(0) end,
                function() semaphore.new(2):acquire(-3) end,
                function() semaphore.new(2):acquire('a') end,
                function() semaphore.new(2):release(0) end,
                function() semaphore.new(2):release(1) end,
                function() local m = mutex.new() m:lock() m:with(print) end,
                function() channel.new(-1) end,
                function() channel.new():send(nil) end,
                function() os.date('%Q') end,
                function() os.time({year = 2000}) end,
                function() sleep(0/0) end,
                function() spawn(1) end,
                function() await(1) end,
                function() json.encode({1, nil, 3}) end,
                function() table.sort({2, 1}, function() sleep(1) end) end,
            }
            function main()
                for i, call in ipairs(calls) do
                    local ok, e = pcall(call)
                    local text = tostring(e)
                    assert(not ok and type(e) == 'table' and text:find('^test.lua:'), i .. ': ' .. text)
                end
                return #calls
            end";
        assert_eq!(value(&lua, text).await, 15.into());
    }

    async fn a_cancelled_task_hears_of_it_where_it_waits(lua: Interpreter) {
        let text = "
            function main()
                local ch, m = channel.new(), mutex.new()
                m:lock()
                local s = semaphore.new(1)
                s:acquire()
                local waits = {
                    function() sleep(1000) end,
                    function() ch:receive() end,
                    function() m:lock() end,
                    function() s:acquire() end,
                    function() receive('never') end,
                    function() channel.select({ch}) end,
                    function() await(spawn(function() sleep(1000) end)) end,
                }
                for i, wait in ipairs(waits) do
                    local t = spawn(function()
                        local ok, e = pcall(wait)
                        return ok, e.kind, e.message
                    end)
                    yield()
                    t:cancel('enough')
                    local ok, kind, message = await(t)
                    assert(not ok and kind == 'cancelled' and message:find('cancelled: enough', 1, true), i)
                end
                -- What they waited for is as it was.
                m:unlock() m:lock()
                s:release() s:acquire()
                return true
            end";
        assert_eq!(value(&lua, text).await, true.into());
    }

    async fn a_failure_that_nobody_awaits_does_not_end_the_process(lua: Interpreter) {
        let text = "
            function main()
                spawn(function() error('alone') end)
                sleep(0.001)
                return 'still here'
            end";
        assert_eq!(value(&lua, text).await, "still here".into());
    }

    async fn an_error_has_its_place_and_a_traceback(lua: Interpreter) {
        let text = "local function deep() error('boom') end\nfunction main() deep() end";
        let reason = failure(&lua, text).await;
        assert!(reason.contains("test.lua:1: boom"), "{reason}");
        assert!(reason.contains("stack traceback:") && reason.contains("test.lua:2"), "{reason}");
        assert!(!reason.contains("windlass:"), "{reason}");
        let reason = failure(&lua, "function main()\n\n sleep('long') end").await;
        assert!(reason.contains("test.lua:3: a time must be a number"), "{reason}");
        let reason = failure(&lua, "function main(").await;
        assert!(reason.contains("test.lua:1:"), "{reason}");
    }
}

/// Not in the simulator: while a task is always ready, its time does not go on.
#[test]
fn a_loop_of_tasks_that_yield_lets_others_in() {
    for placement in BOTH {
        real(|| async move {
            let lua = interpreter(placement);
            let other = "function main() sleep(0.001) return 'in time' end";
            let other = lua.spawn_text("other", other, []).expect("it starts");
            let busy = "function main() while true do yield() end end";
            let busy = lua.spawn_text("busy", busy, []).expect("it starts");
            assert_eq!(other.join().await.value, "in time".into());
            busy.kill();
            busy.join().await;
        });
    }
}

/// A slice may end inside a function of ours that takes long: other processes run then, but no task
/// that could see a queue half changed.
#[test]
fn a_long_queue_is_whole_though_slices_end_inside_of_it() {
    let text = "
        function main()
            local ch, got, tasks = channel.new(), {}, {}
            local function start(i)
                tasks[i] = spawn(function()
                    ch:receive()
                    got[#got + 1] = i
                end)
            end
            for i = 1, 4000 do start(i) end
            yield()
            -- More stand in line, while those in front go.
            local more = spawn(function()
                for i = 4001, 4400 do
                    start(i)
                    if i % 4 == 0 then yield() end
                end
            end)
            for i = 1, 100 do
                tasks[i]:cancel('enough')
                yield()
            end
            more:await()
            yield()
            for _ = 101, 4400 do ch:send(true) end
            for i = 1, 4400 do pcall(await, tasks[i]) end
            for i = 2, #got do assert(got[i - 1] < got[i], 'in their order') end
            return #got
        end";
    for placement in BOTH {
        windlass_runtime::Runtime::simulated(1).block_on(async {
            let vm = Vm::builder().placement(placement).slice_count(700);
            let vm = vm.build().expect("a VM");
            let lua = Interpreter::builder(&vm).build().expect("an interpreter");
            assert_eq!(value(&lua, text).await, 4300.into());
        });
    }
}

/// Tasks that wait for each other, and a first task that waits for all of them.
const WAITS_FOR_TASKS: &str = "
function main(n)
    local done = channel.new()
    for i = 1, n do
        spawn(function()
            sleep(0.001 * (i % 5))
            done:send(i)
        end)
    end
    local sum = 0
    for _ = 1, n do sum = sum + done:receive() end
    if n % 7 == 0 then error('on purpose') end
    return sum
end";

#[test]
fn a_cancel_at_any_moment_ends_a_process_whose_tasks_wait() {
    for placement in BOTH {
        for seed in 0..200 {
            let runtime = windlass_runtime::Runtime::simulated(seed);
            runtime.block_on(async {
                let lua = interpreter(placement);
                let tasks: Vec<_> = (1..=4_i64)
                    .map(|n| lua.spawn_text("waits", WAITS_FOR_TASKS, [(n + 3).into()]))
                    .collect();
                for (which, task) in tasks.into_iter().enumerate() {
                    let task = task.expect("a script that is right");
                    let delay = Duration::from_micros((seed * 37) % 5_000);
                    windlass_runtime::time::sleep(delay).await;
                    task.cancel("enough");
                    let ended = timeout(Duration::from_secs(60), task.join()).await;
                    if ended.is_err() {
                        let mut dump = Vec::new();
                        let _ = windlass_runtime::Handle::current().debug_dump(&mut dump);
                        panic!(
                            "seed {seed}, {placement:?}: number {which} does not end:\n{}",
                            String::from_utf8_lossy(&dump)
                        );
                    }
                }
            });
        }
    }
}
