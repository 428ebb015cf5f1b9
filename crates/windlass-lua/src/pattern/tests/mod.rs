//! Compares with Lua's own functions, by hand-made cases and by random ones.

mod random;

use mlua::{Function, IntoLuaMulti, Lua, MultiValue};

use super::bytes::find_text;
use super::library;

/// A state, and a function that says what is different.
fn comparison() -> (Lua, Function) {
    let lua = Lua::new();
    let ours = library(&lua).expect("the library is made");
    let chunk = lua.load(include_str!("compare.lua")).set_name("=compare");
    let compare = chunk
        .into_function()
        .and_then(|chunk| chunk.call(ours))
        .expect("it compiles");
    (lua, compare)
}

fn assert_same(compare: &Function, arguments: impl IntoLuaMulti) {
    let difference: Option<String> = compare.call(arguments).expect("it compares");
    assert_eq!(difference, None);
}

/// Runs a script that has our functions as `find`, `match`, `gmatch` and `gsub`.
fn run<R: mlua::FromLuaMulti>(script: &str) -> mlua::Result<R> {
    let lua = Lua::new();
    for pair in library(&lua)?.pairs::<String, Function>() {
        let (name, function) = pair?;
        lua.globals().set(name, function)?;
    }
    lua.load(script).eval()
}

#[test]
fn cases_by_hand() {
    let (lua, compare) = comparison();
    let cases: &str = include_str!("cases.lua");
    let check: Function = lua
        .load(cases)
        .set_name("=cases")
        .eval()
        .expect("it compiles");
    let differences: Vec<String> = check.call(compare).expect("it runs");
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn names_of_types_are_told() {
    struct Thing;
    impl mlua::UserData for Thing {}
    let (lua, compare) = comparison();
    let thing = lua.create_userdata(Thing).expect("it is made");
    assert_same(&compare, ("find", &thing, "a"));
    assert_same(&compare, ("gsub", "a", "a", &thing));
    assert_same(
        &compare,
        (
            "gsub",
            "a",
            "a",
            lua.create_table_from([("a", thing)]).expect("a table"),
        ),
    );
    assert_same(
        &compare,
        ("match", mlua::LightUserData(std::ptr::null_mut()), "a"),
    );
}

#[test]
fn depth_and_captures_have_the_same_limits() {
    let (_lua, compare) = comparison();
    for count in [1, 31, 32, 33, 198, 199, 200, 201, 300] {
        let text = "a".repeat(400);
        for item in [
            "a?", "a*", "a-", "(a)", "()", "(a", "a?b?", ".-a", "[a]?", "x-a",
        ] {
            assert_same(&compare, ("find", text.as_str(), item.repeat(count)));
        }
        let items = "a?".repeat(count);
        for end in ["a*$", "[^b]-$", ".-a", "a+a"] {
            assert_same(&compare, ("find", text.as_str(), format!("^{items}{end}")));
        }
    }
    // What comes after the repetition is nowhere: that is seen before it is tried, but not before
    // Lua sees how deep it is. With fewer items Lua would not come to an end.
    for count in [1, 199, 200] {
        let items = "a?".repeat(count);
        for end in ["a*b", "a-b", "a+$b", ".-%."] {
            assert_same(
                &compare,
                ("find", "a".repeat(400), format!("^{items}{end}")),
            );
        }
    }
}

#[test]
fn exponential_patterns_are_given_up() {
    let script = r#"
        local a = ("a"):rep(40)
        local texts = {
            {find, a, (".-"):rep(20) .. "b"},
            {find, a, (".-"):rep(20) .. "[b]"},
            {match, a, ("a*"):rep(20) .. "[b]"},
            {match, a, ("a?"):rep(40) .. "[b]"},
            {match, a, ("(.-)"):rep(20) .. "%f[b]"},
            {gsub, a, (".*"):rep(20) .. "[b]", ""},
            {gsub, a, (".*"):rep(20) .. "[b]", {}},
            {gsub, a, (".*"):rep(20) .. "[b]", function() end},
        }
        for place, text in ipairs(texts) do
            local ok, kind, message = table.unpack(text)(table.unpack(text, 2))
            assert(not ok and kind == "pattern" and message:find("takes too long"), place)
        end
        local ok, iterator = gmatch(a, (".-"):rep(20) .. "[b]")
        local ok, message = pcall(iterator)
        assert(not ok and tostring(message):find("takes too long"))
        return true
    "#;
    assert!(run::<bool>(script).expect("each gives up"));
}

#[test]
fn work_that_is_not_matching_is_counted_too() {
    let script = r#"
        local function late(f, ...)
            local ok, kind, message = f(...)
            assert(not ok and message:find("takes too long"), message)
        end
        local many = ("a"):rep(50000)
        late(gsub, many, "", ("%0"):rep(1000))
        late(find, ("("):rep(20000), "%b()")
        late(find, many, "(a*)b?%1%1%1%1[b]")
        return true
    "#;
    assert!(run::<bool>(script).expect("each gives up"));
}

/// Comparing at each place takes the square of the length, and was given up.
#[test]
fn a_search_for_a_text_takes_time_in_proportion_to_it() {
    let script = r#"
        local many = ("a"):rep(2000000)
        local nearly = many:sub(1, 1000000) .. "b"
        local function nowhere(ok, first) assert(ok and first == nil, first) end
        nowhere(find(many, nearly, 1, true))
        nowhere(find(many, nearly))
        nowhere(match(many, nearly))
        local ok, same, count = gsub(many, nearly, "x")
        assert(ok and same == many and count == 0, count)
        local ok, iterator = gmatch(many, nearly)
        assert(ok and iterator() == nil)
        local ok, first, last = find(many .. nearly .. many, nearly, 5, true)
        assert(ok and first == #many + 1 and last == #many + #nearly)
        return true
    "#;
    assert!(run::<bool>(script).expect("each ends"));
}

#[test]
fn long_texts_have_the_time_they_need() {
    let script = r#"
        local text = ("some words, and 42 numbers; "):rep(2000)
        assert(select(3, gsub(text, "%a+", "%0%0")) == 8000)
        assert(select(3, gsub(text, "%d", function(d) return d + 1 end)) == 4000)
        assert(select(2, find(text .. "END", "END")) == #text + 1)
        assert(select(2, find(text .. "END", ".-(END)$")) == 1)
        assert(select(2, find(("a"):rep(2000), "a*b")) == nil)
        assert(select(2, match((" "):rep(5000), "^%s*(.-)%s*$")) == "")
        local count, ok, words = 0, gmatch(text, "[%w_]+")
        for _ in words do count = count + 1 end
        return count
    "#;
    assert_eq!(run::<i64>(script).expect("it ends"), 10000);
}

#[test]
fn results_cannot_be_too_long() {
    let script = r#"
        local text, long = ("a"):rep(1000), ("b"):rep(100000)
        for _, replacement in ipairs {long, function() return long end, {a = long}} do
            local ok, kind, message = gsub(text, "a", replacement)
            assert(not ok and kind == "pattern" and message == "the result is too long", message)
        end
        local ok, result, count = gsub(text:sub(1, 100), "a", function() return long end)
        assert(ok and count == 100 and result == ("b"):rep(10000000))
        return true
    "#;
    assert!(run::<bool>(script).expect("each gives up"));
}

#[test]
fn errors_of_scripts_stay_what_they_are() {
    let script = r#"
        local thrown = {}
        local ok, error_of_function = pcall(gsub, "abc", "b", function() error(thrown) end)
        assert(not ok and error_of_function == thrown)
        local indexed = setmetatable({}, {__index = function() error(thrown) end})
        local ok, error_of_index = pcall(gsub, "abc", "b", indexed)
        assert(not ok and error_of_index == thrown)
        local ok, message = pcall(gsub, "abc", "b", function() error("told", 0) end)
        assert(message == "told")
        return true
    "#;
    assert!(run::<bool>(script).expect("it runs"));
}

#[test]
fn replacements_may_yield_and_may_never_come_back() {
    let script = r#"
        local co = coroutine.wrap(function()
            return gsub("a b c", "%a", function(letter) return coroutine.yield(letter) end)
        end)
        assert(co() == "a" and co("1") == "b" and co(false) == "c")
        local ok, text, count = co(3)
        assert(ok and text == "1 b 3" and count == 3)
        local left = coroutine.wrap(function() gsub("abc", ".", coroutine.yield) end)
        left()
        return true
    "#;
    assert!(run::<bool>(script).expect("it runs"));
}

#[test]
fn unchanged_texts_are_not_copied() {
    let lua = Lua::new();
    let gsub: Function = library(&lua)
        .and_then(|ours| ours.get("gsub"))
        .expect("it is there");
    let text = lua.create_string("x".repeat(1000)).expect("a string");
    let (_, result, _): (bool, mlua::LuaString, i64) =
        gsub.call((&text, "y", "z")).expect("it runs");
    assert_eq!(result.to_pointer(), text.to_pointer());
}

#[test]
fn wrong_arguments_are_no_errors_of_rust() {
    let lua = Lua::new();
    for pair in library(&lua)
        .expect("the library is made")
        .pairs::<String, Function>()
    {
        let (name, function) = pair.expect("a function");
        let answer: MultiValue = function.call(()).expect("it does not raise");
        let message = answer[2].to_string().expect("a message");
        let expected = format!("bad argument #1 to '{name}' (string expected, got no value)");
        assert_eq!(message, expected);
    }
}

#[test]
fn texts_are_found_where_they_are() {
    for length in 0..100 {
        for at in 0..length {
            let mut text = vec![b'a'; length];
            text[at] = b'b';
            let wanted = &text[at..];
            assert_eq!(find_text(&text, wanted, 0), Some(at));
            assert_eq!(find_text(&text, wanted, at + 1), None);
            assert_eq!(find_text(&text, b"", at), Some(at));
        }
    }
}
