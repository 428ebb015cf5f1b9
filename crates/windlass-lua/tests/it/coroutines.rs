//! Coroutines of scripts, which do not notice that their task waits or is preempted inside of them.

use windlass_lua::Interpreter;

use crate::support::{everywhere, value};

everywhere! {
    async fn coroutines_work_as_in_lua(lua: Interpreter) {
        let text = "
            function main()
                local co = coroutine.create(function(a)
                    local b = coroutine.yield(a + 1)
                    local c = coroutine.yield(b + 1)
                    return c + 1
                end)
                local _, x = coroutine.resume(co, 1)
                local _, y = coroutine.resume(co, 10)
                local _, z = coroutine.resume(co, 100)
                local dead, why = coroutine.resume(co)
                assert(x == 2 and y == 11 and z == 101 and not dead and why == 'cannot resume dead coroutine')
                assert(coroutine.status(co) == 'dead')
                local sum = 0
                for i in coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) do sum = sum + i end
                assert(sum == 55)
                local ok, e = pcall(coroutine.wrap(function() error('inside') end))
                assert(not ok and e:find('inside'), e)
                local ok, e = pcall(coroutine.yield, 1)
                assert(not ok and e:find('outside a coroutine'), e)
                local closed
                local co = coroutine.create(function()
                    local x <close> = setmetatable({}, {__close = function() closed = true end})
                    coroutine.yield()
                end)
                coroutine.resume(co)
                assert(coroutine.close(co) and closed)
                assert(not pcall(coroutine.close, coroutine.running()))
                return sum
            end";
        assert_eq!(value(&lua, text).await, 55.into());
    }

    async fn a_wait_inside_coroutines_is_a_wait_of_the_task(lua: Interpreter) {
        let text = "
            function main()
                local ch = channel.new()
                spawn(function() for i = 1, 3 do sleep(0.001) ch:send(i) end ch:close() end)
                local inner = coroutine.wrap(function()
                    local deeper = coroutine.wrap(function()
                        while true do
                            local v = ch:receive()
                            if v == nil then return end
                            coroutine.yield(v * 10)
                        end
                    end)
                    for v in deeper do coroutine.yield(v + 1) end
                end)
                local got = {}
                for v in inner do got[#got + 1] = v end
                return table.concat(got, ',')
            end";
        assert_eq!(value(&lua, text).await, "11,21,31".into());
    }

    async fn preemption_inside_a_coroutine_is_not_seen(lua: Interpreter) {
        let text = "
            function main()
                local other = 0
                local done = false
                local t = spawn(function() while not done do other = other + 1 yield() end end)
                local co = coroutine.wrap(function()
                    local inner = coroutine.wrap(function()
                        local n = 0
                        -- Until another task was in.
                        local before = other
                        while other < before + 3 do n = n + 1 end
                        coroutine.yield('first')
                        before = other
                        while other < before + 3 do n = n + 1 end
                        return 'second'
                    end)
                    coroutine.yield(inner())
                    return inner()
                end)
                local a, b = co(), co()
                done = true
                await(t)
                return a .. ' ' .. b
            end";
        assert_eq!(value(&lua, text).await, "first second".into());
    }

    async fn a_coroutine_that_waits_is_not_resumed_by_another_task(lua: Interpreter) {
        let text = "
            function main()
                local co = coroutine.create(function() sleep(0.01) return 'slept' end)
                local t = spawn(function() return coroutine.resume(co) end)
                yield()
                local ok, why = coroutine.resume(co)
                assert(not ok and why == 'cannot resume non-suspended coroutine', why)
                local _, slept = await(t)
                return slept
            end";
        assert_eq!(value(&lua, text).await, "slept".into());
    }

    async fn waiting_where_it_cannot_be_is_a_clear_error(lua: Interpreter) {
        let text = "
            function main()
                local ok, e = pcall(table.sort, {3, 1, 2}, function(a, b) sleep(0.001) return a < b end)
                assert(not ok and tostring(e):find('cannot wait here'), e)
                local ok, e = pcall(table.sort, {3, 1, 2}, coroutine.wrap(function(a, b) sleep(0.001) return a < b end))
                assert(not ok and tostring(e):find('cannot wait here'), e)
                return true
            end";
        assert_eq!(value(&lua, text).await, true.into());
    }
}
