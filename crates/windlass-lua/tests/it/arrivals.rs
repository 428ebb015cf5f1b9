//! What arrives at a process: as it was sent, or as an error that the process can catch.

use windlass_actor::Message;
use windlass_lua::{Interpreter, Script};
use windlass_runtime::task::yield_now;
use windlass_value::Payload;
use windlass_vm::{Limits, SpawnOptions};

use crate::support::{everywhere, value};

/// Lua code with `same(a, b)`, which compares values by what is in them.
const SAME: &str = r#"
    local function same(a, b)
        if type(a) ~= type(b) then return false end
        if type(a) ~= 'table' then return a == b and math.type(a) == math.type(b) end
        for k, v in pairs(a) do if not same(v, b[k]) then return false end end
        for k in pairs(b) do if a[k] == nil then return false end end
        return true
    end
"#;

/// A process that receives until it is cancelled, and returns what it got: the payloads, or the
/// kinds of the errors.
const RECEIVER: &str = r#"
    function main()
        process.register('receiver')
        local got = {}
        while true do
            local ok, m = pcall(receive)
            if ok and m.topic == 'stop' then return got end
            if ok then
                got[#got + 1] = m.payload == nil and 'nil' or m.payload
            else
                got[#got + 1] = type(m) == 'table' and m.kind or tostring(m)
            end
        end
    end
"#;

/// Starts the receiver with this much memory, sends it all of this, and gives what it got.
async fn received(lua: &Interpreter, memory: usize, payloads: Vec<Payload>) -> Vec<Payload> {
    let options = SpawnOptions::new().limits(Limits::NONE.memory(memory));
    let script = Script::text("receiver.lua", RECEIVER);
    let task = lua.spawn_with(script, [], options).expect("it starts");
    while lua.vm().host().whereis("receiver").is_none() {
        yield_now().await;
    }
    for payload in payloads {
        let message = Message::new("x", payload);
        lua.vm()
            .host()
            .send(task.pid(), message)
            .expect("it is sent");
    }
    let stop = Message::new("stop", Payload::Nil);
    lua.vm().host().send(task.pid(), stop).expect("it is sent");
    let exit = task.join().await;
    assert!(exit.reason.is_normal(), "{}", exit.reason);
    exit.value.as_list().expect("a list").to_vec()
}

fn entries(flat: impl IntoIterator<Item = Payload>) -> Payload {
    let flat: Vec<Payload> = flat.into_iter().collect();
    Payload::map([("#entries", Payload::from(flat))])
}

/// Lists in each other, so many.
fn nested(levels: usize) -> Payload {
    (0..levels).fold(Payload::Nil, |inner, _| Payload::from(vec![inner]))
}

everywhere! {
    async fn a_script_cannot_forge_the_form_of_other_tables(lua: Interpreter) {
        let text = format!("{SAME}{}", r##"
            function main()
                local forged = {
                    {["#entries"] = {0/0, 1}}, {["#entries"] = {}}, {["#entries"] = {1}},
                    {["#entries"] = {'a', 1}}, {["#entries"] = {{}, 1}}, {["#entries"] = 'text'},
                    {["#entries"] = {["#entries"] = {1, 2}}}, {["#entries"] = {1, 2}, other = 3},
                    {["#entries"] = {1, 2}, [1] = 3}, {{["#entries"] = {true, 2}}},
                    {[true] = {["#entries"] = {'a', 1}}},
                }
                for i, v in ipairs(forged) do
                    send(process.self(), 'x', v)
                    local got = receive('x').payload
                    if i == 1 then
                        local list = got['#entries']
                        assert(#list == 2 and list[1] ~= list[1] and list[2] == 1)
                    else
                        assert(same(got, v), i)
                    end
                end
                assert(json.encode({["#entries"] = {1, 2}}) == '{"#entries":[1,2]}')
                local nested = json.encode({{["#entries"] = {["#entries"] = 1}}})
                assert(nested == '[{"#entries":{"#entries":1}}]', nested)
                local ok, e = pcall(json.encode, {["#entries"] = {[true] = 1}})
                assert(not ok and e.kind == 'json', e)
                return true
            end"##);
        assert_eq!(value(&lua, &text).await, true.into());
    }

    async fn one_script_cannot_end_another_with_a_message(lua: Interpreter) {
        let victim = lua.spawn_text("victim", RECEIVER, []).expect("it starts");
        while lua.vm().host().whereis("receiver").is_none() {
            yield_now().await;
        }
        let text = r##"
            function main()
                send('receiver', 'x', 1)
                send('receiver', 'x', {["#entries"] = {0/0, 1}})
                send('receiver', 'stop')
            end"##;
        value(&lua, text).await;
        let exit = victim.join().await;
        assert!(exit.reason.is_normal(), "{}", exit.reason);
        assert_eq!(exit.value.as_list().map(<[Payload]>::len), Some(2));
    }

    async fn entries_that_no_table_can_have_arrive_as_a_table_with_their_name(lua: Interpreter) {
        let odd = entries([1.into(), 2.into(), 3.into()]);
        let nil = entries([Payload::Nil, 1.into()]);
        let nan = entries([Payload::Float(f64::NAN), 1.into()]);
        let inside = Payload::from(vec![nan.clone()]);
        let good = entries([Payload::Bool(true), 1.into()]);
        let sent = vec![odd.clone(), nil.clone(), nan, inside, good.clone()];
        let got = received(&lua, 64 << 20, sent).await;
        // A map with this one name is itself sent on through the form for other tables.
        let named = |value: Payload| entries(["#entries".into(), value]);
        let list = |payload: &Payload| payload.get("#entries").expect("its entries").clone();
        assert_eq!(got[0], named(list(&odd)));
        assert!(format!("{:?}", got[1]).starts_with(r##"{"#entries": ["#entries", "##), "{:?}", got[1]);
        assert!(format!("{:?}", got[2]).contains(r##"["#entries", [NaN, 1]]"##), "{:?}", got[2]);
        assert!(format!("{:?}", got[3]).contains(r##"["#entries", [NaN, 1]]"##), "{:?}", got[3]);
        assert_eq!(got[4], good);
    }

    async fn a_message_that_is_too_deep_is_an_error_of_receive(lua: Interpreter) {
        let sent = vec![nested(60), nested(2000), 7.into()];
        let got = received(&lua, 64 << 20, sent).await;
        assert_eq!(got[1..], ["payload".into(), 7.into()]);
    }

    async fn a_message_that_does_not_fit_is_an_error_of_receive(lua: Interpreter) {
        let large = "x".repeat(4 << 20);
        let list = |_| Payload::from(vec![Payload::Int(1); 8]);
        let lists = Payload::from((0..50_000).map(list).collect::<Vec<_>>());
        let many = Payload::from((0..200_000).map(Payload::Int).collect::<Vec<_>>());
        let sent = vec![large.clone().into(), many, lists, 7.into(), large.into(), 8.into()];
        let got = received(&lua, 2 << 20, sent).await;
        let error = || Payload::from("payload");
        assert_eq!(got, [error(), error(), error(), 7.into(), error(), 8.into()]);
    }

    async fn the_error_of_another_process_does_not_have_to_fit(lua: Interpreter) {
        let text = "
            function main()
                process.trap_links()
                local ok, e = pcall(receive, 'exit')
                return ok and e.payload.kind or e.kind
            end";
        let options = SpawnOptions::new().limits(Limits::NONE.memory(2 << 20));
        let script = Script::text("parent.lua", text);
        let parent = lua.spawn_with(script, [], options).expect("it starts");
        let child = "function main(parent)
            process.link(parent)
            sleep(0.01)
            error(('x'):rep(4 << 20))
        end";
        let child = lua.spawn_text("child", child, [parent.pid().into()]).expect("it starts");
        child.join().await;
        let exit = parent.join().await;
        assert_eq!(exit.value, "payload".into(), "{}", exit.reason);
    }

    async fn random_tables_survive_a_message(lua: Interpreter) {
        let text = format!("{SAME}{}", r##"
            local keys = {
                function() return math.random(6) end,
                function() return math.random(-3, 40) end,
                function() return math.random(8) / 2 end,
                function() return ('abcdef'):sub(1, math.random(6)) end,
                function() return '#entries' end,
                function() return '\xff' .. math.random(3) end,
                function() return math.random(2) == 1 end,
            }
            local function random(level)
                local kind = math.random(level < 4 and 9 or 5)
                if kind == 1 then return math.random(100)
                elseif kind == 2 then return math.random()
                elseif kind == 3 then return math.random(2) == 1
                elseif kind == 4 then return ('xyz'):rep(math.random(0, 3))
                elseif kind == 5 then return '\xfe' .. math.random(9) end
                local t = {}
                -- As a list with gaps, which has room in its array, or with keys one by one.
                if kind == 6 then
                    for i = 1, math.random(0, 8) do t[i] = random(level + 1) end
                elseif kind == 7 then
                    t = {random(level + 1), nil, random(level + 1), nil, nil, random(level + 1)}
                end
                local few = math.random(#keys)
                for _ = 1, math.random(0, 6) do
                    local key = keys[math.random(2) == 1 and few or math.random(#keys)]()
                    t[key] = random(level + 1)
                end
                for _ = 1, math.random(0, 2) do t[math.random(6)] = nil end
                return t
            end
            function main()
                math.randomseed(20240607)
                for i = 1, 100 do
                    local v = {random(1)}
                    send(process.self(), 'x', v)
                    assert(same(receive('x').payload, v), i)
                end
                local lost = {1, 2, nil, 4}
                lost.x = 'lost?'
                return lost
            end"##);
        let got = value(&lua, &text).await;
        let list = got.get("#entries").and_then(Payload::as_list).expect("entries");
        assert_eq!(list.len(), 8, "{got:?}");
    }
}
