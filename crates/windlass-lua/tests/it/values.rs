//! What values are on their way.

use windlass_lua::Interpreter;
use windlass_value::Payload;

use crate::support::{everywhere, value};

everywhere! {
    async fn values_come_back_as_they_were(lua: Interpreter) {
        let text = r#"
            local function same(a, b)
                if type(a) ~= type(b) then return false end
                if type(a) ~= 'table' then return a == b and math.type(a) == math.type(b) end
                for k, v in pairs(a) do if not same(v, b[k]) then return false end end
                for k in pairs(b) do if a[k] == nil then return false end end
                return true
            end
            function main()
                local values = {
                    1, 1.0, -0.5, 1e300, math.maxinteger, 'text', '\xff\x00', true, false, {}, {1, 2, {3}},
                    {a = {b = {c = 'd'}}}, {[10] = 'ten', [20] = 'twenty'}, {1, 2, x = 'mixed'}, {[1.5] = 1, [true] = 2},
                }
                for i, v in ipairs(values) do
                    send(process.self(), 'x', v)
                    assert(same(receive('x').payload, v), i)
                end
                send(process.self(), 'x', buffer('bytes'))
                return receive('x').payload
            end"#;
        assert_eq!(value(&lua, text).await, "bytes".into());
    }

    async fn a_table_that_is_reached_in_several_ways_is_sent_once(lua: Interpreter) {
        let text = r#"
            function main()
                local w = {'leaf'}
                for i = 1, 60 do w = {w, w, name = w} end
                send(process.self(), 'x', w)
                local got = receive('x').payload
                assert(got[1] == got[2] and got[2] == got.name and got[1][1] == got.name.name)
                for i = 1, 60 do got = got[1] end
                assert(got[1] == 'leaf')
                -- As a key, too, and as an error that nobody catches.
                send(process.self(), 'x', {[w] = 1, [true] = 2})
                receive('x')
                spawn(function() error(w) end)
                sleep(0)
                local list = {}
                for i = 1, 60 do list = {list, list} end
                local ok, e = pcall(json.encode, list)
                assert(not ok and e.kind == 'json', e)
                assert(tostring(e):find('takes more than %d+ bytes'), e)
                assert(tostring(e):find('raise that'), e)
                return json.encode({w[1] == w[2]})
            end"#;
        assert_eq!(value(&lua, text).await, "[true]".into());
    }

    async fn a_message_has_to_fit_into_the_memory_of_its_sender(lua: Interpreter) {
        let text = r#"
            function main()
                local s = ('x'):rep(6000000)
                local ok, e = pcall(send, process.self(), 'x', {s, s})
                assert(not ok and e.kind == 'argument', e)
                assert(tostring(e):find('takes more than %d+ bytes cannot be sent'), e)
                assert(send(process.self(), 'x', s))
                return #receive('x').payload
            end"#;
        let limits = windlass_vm::Limits::NONE.memory(16 << 20);
        let options = windlass_vm::SpawnOptions::new().limits(limits);
        let script = windlass_lua::Script::text("small.lua", text);
        let exit = lua.spawn_with(script, [], options).expect("it starts").join().await;
        assert_eq!(exit.value, 6_000_000.into(), "{}", exit.reason);
    }

    async fn json_there_and_back(lua: Interpreter) {
        let text = r#"
            function main()
                local t = json.decode('{"a": [1, 2.5, "x", null, true], "b": {}}')
                assert(t.a[2] == 2.5 and t.a[4] == json.null and t.a[5] == true)
                assert(not pcall(json.decode, '{'))
                assert(not pcall(json.encode, {0/0}))
                return json.encode({list = {1, 2}, n = json.null, s = 'q"'})
            end"#;
        assert_eq!(value(&lua, text).await, r#"{"list":[1,2],"n":null,"s":"q\""}"#.into());
    }

    async fn dates_and_random_numbers(lua: Interpreter) {
        let text = "
            function main()
                assert(os.date('%Y-%m-%d %H:%M:%S', 0) == '1970-01-01 00:00:00')
                assert(os.time({year = 2000, month = 2, day = 29, hour = 0}) == 951782400)
                assert(os.time() > 1500000000 and now() >= 0 and os.clock() >= 0)
                local n = math.random(100)
                return n >= 1 and n <= 100
            end";
        assert_eq!(value(&lua, text).await, Payload::Bool(true));
    }
}
