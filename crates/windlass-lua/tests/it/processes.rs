//! Lua processes and each other.

use windlass_lua::Interpreter;

use crate::support::{everywhere, value};

everywhere! {
    async fn a_process_talks_to_itself_and_others(lua: Interpreter) {
        let echo = lua.spawn_text("echo", "
            function main()
                while true do
                    local m = receive()
                    if m.topic == 'stop' then return 'stopped' end
                    send(m.from, 'echo', m.payload)
                end
            end", []).expect("it starts");
        let client = lua.spawn_text("client", "
            function main(to)
                send(to, 'hello', {1, 'two', {three = 3.5}, true})
                local m = receive('echo')
                assert(m.payload[3].three == 3.5 and m.payload[4] == true and m.from == to)
                local nothing, why = receive('never', 0.001)
                assert(nothing == nil and why == 'timeout')
                send(to, 'stop')
                return m.payload[2]
            end", [echo.pid().into()]).expect("it starts");
        assert_eq!(client.join().await.value, "two".into());
        assert_eq!(echo.join().await.value, "stopped".into());
    }

    async fn messages_are_chosen_by_topic_and_the_others_stay(lua: Interpreter) {
        let text = "
            function main()
                local me = process.self()
                for _, topic in ipairs {'a.1', 'b', 'a.2'} do send(me, topic, topic) end
                return receive('b').payload .. receive('a.*').payload .. receive().payload
            end";
        assert_eq!(value(&lua, text).await, "ba.1a.2".into());
    }

    async fn a_field_that_a_start_does_not_have_is_refused(lua: Interpreter) {
        let text = "
            function main()
                local ok, e = pcall(process.spawn, {script = 'any.lua', memry = 3})
                assert(not ok and e.kind == 'argument')
                return e.message
            end";
        let message = format!("{:?}", value(&lua, text).await);
        assert!(message.contains("'memry'") && message.contains("memory"), "{message}");
    }

    async fn names_and_groups(lua: Interpreter) {
        let other = lua.spawn_text("other", "process.register('taken') receive()", []).expect("it starts");
        while lua.vm().host().whereis("taken").is_none() {
            windlass_runtime::task::yield_now().await;
        }
        let text = "
            function main()
                process.register('me')
                assert(process.whereis('me') == process.self() and process.whereis('nobody') == nil)
                local ok, e = pcall(process.register, 'taken')
                assert(not ok and e.kind == 'register')
                assert(send('me', 'to', 'name'))
                local ok, why = send('nobody', 'x')
                assert(ok == false and why == 'no_process')
                process.join('all')
                assert(#process.members('all') == 1 and process.broadcast('all', 'news', 'n') == 1)
                assert(process.leave('all'))
                return receive('to').payload .. receive('news').payload
            end";
        assert_eq!(value(&lua, text).await, "namen".into());
        other.kill();
        other.join().await;
    }

    async fn timers_send_messages(lua: Interpreter) {
        let text = "
            function main()
                timer.after(0.002, 'late', 'x')
                local ticker = timer.every(0.001, 'tick')
                local n = 0
                while n < 3 do receive('tick') n = n + 1 end
                assert(timer.stop(ticker) == true)
                return receive('late').payload
            end";
        assert_eq!(value(&lua, text).await, "x".into());
    }

    async fn what_cannot_be_sent_is_a_clear_error(lua: Interpreter) {
        let text = "
            function main()
                local me, t = process.self(), {}
                t.t = t
                local said = {}
                for _, bad in ipairs {{f = print}, {{coroutine.create(print)}}, t, {channel.new()}} do
                    local ok, e = pcall(send, me, 'x', bad)
                    said[#said + 1] = not ok and e.kind .. ' ' .. e.message
                end
                return table.concat(said, '\\n')
            end";
        let said = value(&lua, text).await;
        let said = said.as_str().unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].contains("a function cannot be sent (at .f)"), "{said}");
        assert!(lines[1].contains("a thread cannot be sent (at [1][1])"), "{said}");
        assert!(lines[2].contains("a table that contains itself"), "{said}");
        assert_eq!(lines.len(), 4, "{said}");
    }
}
