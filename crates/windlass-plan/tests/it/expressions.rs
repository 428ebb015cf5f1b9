//! Expressions: what they mean, and that nothing makes them panic.

use serde_json::{Value, json};
use windlass_plan::expression::{
    Expression, ExpressionError, ExpressionErrorKind, MessageScope, Names, function_names,
};
use windlass_value::Payload;

fn evaluate(source: &str, value: &Value) -> Result<Value, ExpressionError> {
    let message = Payload::from(value.clone());
    let made = Expression::new(source)?.evaluate(&MessageScope::of(&message))?;
    Ok(made.to_json().expect("expressions make JSON"))
}

#[track_caller]
fn gives(source: &str, expected: Value) {
    let found = evaluate(source, &sample());
    assert_eq!(found, Ok(expected), "{source}");
}

#[track_caller]
fn fails(source: &str, message: &str) {
    let error = evaluate(source, &sample()).expect_err(source);
    assert!(error.to_string().contains(message), "{source}: {error}");
}

fn sample() -> Value {
    json!({
        "n": 7, "f": 2.5, "t": "Text", "b": true, "nothing": null,
        "list": [3, 1, 2], "rows": [{"x": 1}, {"x": 2}], "o": {"k": {"deep": 5}},
    })
}

#[test]
fn operators_bind_as_people_expect() {
    for (source, expected) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("10 - 3 - 2", json!(5)),
        ("100 / 5 / 2", json!(10)),
        ("2 * 3 % 4", json!(2)),
        ("-2 * 3", json!(-6)),
        ("- -2", json!(2)),
        ("1 < 2 == true", json!(true)),
        ("1 + 1 < 3", json!(true)),
        ("1 == 1 && 2 == 3", json!(false)),
        ("true || false && false", json!(true)),
        ("!true || true", json!(true)),
        ("!(true || true)", json!(false)),
        ("false ? 1 : true ? 2 : 3", json!(2)),
        ("true ? false ? 1 : 2 : 3", json!(2)),
        ("1 < 2 ? 'yes' : 'no'", json!("yes")),
        ("-value.n + 1", json!(-6)),
        ("!value.b == false", json!(true)),
    ] {
        gives(source, expected);
    }
}

#[test]
fn numbers_are_whole_as_long_as_they_can_be() {
    gives("6 / 2", json!(3));
    gives("7 / 2", json!(3.5));
    gives("7 % 4", json!(3));
    gives("-7 % 4", json!(-3));
    gives("7.5 % 2", json!(1.5));
    gives("1 + 0.5", json!(1.5));
    gives("1e3", json!(1000.0));
    gives("1 == 1.0", json!(true));
    gives("9007199254740993 < 9007199254740992.0", json!(false));
    gives(
        "9223372036854775807 - 1",
        json!(9_223_372_036_854_775_806_i64),
    );
    gives("pow(2, 10)", json!(1024));
    gives("pow(2, -1)", json!(0.5));
    for source in [
        "9223372036854775807 + 1",
        "9223372036854775807 * 2",
        "-9223372036854775807 - 2",
        "abs(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) / -1",
        "pow(10, 19)",
        "int(1e300)",
        "sum([9223372036854775807, 1])",
    ] {
        fails(source, "64 bits");
    }
    gives("(-9223372036854775807 - 1) % -1", json!(0));
    fails("1 / 0", "division by zero");
    fails("1 % 0", "division by zero");
    fails("1.5 / 0", "division by zero");
    fails("sqrt(-1)", "finite");
    fails("1e308 * 10", "finite");
    fails("9223372036854775808", "is no number");
    fails("1e999", "is no number");
    fails("1e", "is no number");
}

#[test]
fn values_are_reached_by_field_and_index() {
    gives("value.n", json!(7));
    gives("value['n']", json!(7));
    gives("value[\"o\"].k.deep", json!(5));
    gives("value.list[0]", json!(3));
    gives("value.list[-1]", json!(2));
    gives("value.list[9]", json!(null));
    gives("value.list[-9]", json!(null));
    gives("value.rows.x", json!([1, 2]));
    gives("sum(value.rows.x)", json!(3));
    gives("value.missing", json!(null));
    gives("value.missing.deeper[0].still", json!(null));
    gives("{a: 1, 'b c': [value.n]}", json!({"a": 1, "b c": [7]}));
    gives("{a: {b: 2}}.a.b", json!(2));
    gives("[1, 2,][1]", json!(2));
    gives("[] + [1]", json!([1]));
    fails("value.n.x", "an object or a list, and got a number");
    fails("value.list['x'].y", "an object or a list");
    fails("value[0]", "a text");
    fails("value.list[1.5]", "a whole number");
}

#[test]
fn texts_have_escapes() {
    gives(r#""a" + 'b'"#, json!("ab"));
    gives(r#"'it\'s \"\n\t\\\u0041'"#, json!("it's \"\n\t\\A"));
    gives("'ä' < 'b'", json!(false));
    fails("'open", "no closing quote");
    fails(r"'\x'", "after a backslash");
    fails(r"'\ud800'", "after a backslash");
}

#[test]
fn functions_do_what_they_are_called() {
    for (source, expected) in [
        ("abs(-2.5)", json!(2.5)),
        ("min(3, 1.5, 2)", json!(1.5)),
        ("max(value.list)", json!(3)),
        ("min([])", json!(null)),
        ("round(2.5)", json!(3)),
        ("floor(-2.5)", json!(-3)),
        ("ceil(2.1)", json!(3)),
        ("sqrt(9)", json!(3.0)),
        ("len('äö')", json!(2)),
        ("len(value.list)", json!(3)),
        ("len({a: 1})", json!(1)),
        ("lower('AbC')", json!("abc")),
        ("upper('AbC')", json!("ABC")),
        ("contains('abc', 'b')", json!(true)),
        ("contains([1, 2], 2.0)", json!(true)),
        ("contains(value, 'n')", json!(true)),
        ("starts_with('abc', 'ab')", json!(true)),
        ("ends_with('abc', 'ab')", json!(false)),
        ("split('a,b', ',')", json!(["a", "b"])),
        ("split('ab', '')", json!(["a", "b"])),
        ("join([1, 'x', null], '-')", json!("1-x-null")),
        ("str(1.5) + str('x')", json!("1.5x")),
        ("num(' 42 ')", json!(42)),
        ("num('1.5') + 1", json!(2.5)),
        ("int(2.9)", json!(2)),
        ("int('7')", json!(7)),
        ("int(true)", json!(1)),
        ("exists(value.missing)", json!(false)),
        ("exists(value.n)", json!(true)),
        ("default(value.missing, 3)", json!(3)),
        ("default(0, 3)", json!(0)),
        ("mean([1, 2, 6])", json!(3.0)),
        ("mean([])", json!(null)),
        ("sum([])", json!(0)),
        ("sum([1, 0.5])", json!(1.5)),
        ("stddev([2, 4, 4, 4, 5, 5, 7, 9])", json!(2.0)),
        ("stddev([])", json!(null)),
        ("first(value.list)", json!(3)),
        ("last([])", json!(null)),
        ("count(value.list)", json!(3)),
        ("keys({b: 1, a: 2})", json!(["a", "b"])),
        ("matches('sub.input', '*.in*')", json!(true)),
        ("matches('output', '*.in*')", json!(false)),
        ("type(1) == type(1.5)", json!(true)),
        (
            "[type(1), type('x'), type({})]",
            json!(["number", "text", "object"]),
        ),
        (
            "[type(null), type(true), type([])]",
            json!(["null", "boolean", "list"]),
        ),
    ] {
        gives(source, expected);
    }
    fails("num('x')", "\"x\" is no number");
    fails(
        "mean(['x'])",
        "mean takes a list of numbers, and got a text",
    );
    fails(
        "len(1)",
        "len takes a text, bytes, a list or an object, and got a number",
    );
    fails("abs(1, 2)", "abs takes one argument, and got 2");
    fails("min()", "min takes at least 1, and got 0");
    fails("contains('a')", "contains takes 2 arguments, and got 1");
}

#[test]
fn every_function_refuses_wrong_types_without_panicking() {
    let values = [
        "1", "1.5", "'x'", "''", "true", "null", "[]", "[1]", "['a']", "{}", "{a: 1}",
    ];
    for function in function_names() {
        for a in values {
            let _ = evaluate(&format!("{function}({a})"), &Value::Null);
            for b in values {
                let _ = evaluate(&format!("{function}({a}, {b})"), &Value::Null);
            }
        }
    }
}

#[test]
fn what_is_decided_is_not_looked_at() {
    gives("false && 1 / 0 == 1", json!(false));
    gives("true || 1 / 0 == 1", json!(true));
    gives("true ? 1 : 1 / 0", json!(1));
    fails("1 && true", "&& takes a boolean, and got a number");
    fails("true && 'x'", "a boolean, and got a text");
    fails("null ? 1 : 2", "the condition before `?` takes a boolean");
    fails("'a' - 1", "- takes two numbers, and got a text");
    fails(
        "1 + 'a'",
        "two numbers, two texts or two lists, and got a text",
    );
    fails("1 < 'a'", "got a text");
    fails("null < 1", "got null");
    fails("-'a'", "got a text");
}

#[test]
fn names_say_what_is_known_of_a_message() {
    let scope = MessageScope {
        value: &json!(1).into(),
        values: &json!([1, 2]).into(),
        epoch: 5,
        now_ms: 12.5,
        port: "in",
        event_ms: Some(3.0),
    };
    let source = "[value, epoch, now_ms, port, event_ms]";
    let all = Expression::new(source).unwrap().evaluate(&scope);
    assert_eq!(all, Ok(json!([1, 5, 12.5, "in", 3.0]).into()));
    let window = Expression::compile("count(values)", Names::Window).unwrap();
    assert_eq!(window.evaluate(&scope), Ok(json!(2).into()));
    let error = Expression::new("values").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no values; there are value, epoch, now_ms, port, event_ms (column 1)"
    );
}

#[test]
fn a_constant_stands_for_its_value() {
    let constants = [("wanted", Payload::from("it's")), ("value", 3.into())];
    let source = "wanted + str(value) + str(epoch)";
    let expression = Expression::compile_with(source, Names::Event, &constants).unwrap();
    let scope = MessageScope::of(&Payload::Nil);
    assert_eq!(expression.evaluate(&scope), Ok("it's30".into()));
}

#[test]
fn a_condition_is_true_or_false() {
    let value = Payload::from(sample());
    let holds = |source: &str| {
        let condition = Expression::new(source).unwrap();
        let scope = MessageScope::of(&value);
        condition
            .holds(&scope)
            .map_err(|error| condition.explain(&error))
    };
    assert_eq!(holds("value.n > 6"), Ok(true));
    assert_eq!(holds("value.n > 7"), Ok(false));
    let told = "the expression cannot be computed: value.n gives 7: a condition needs true or \
                false (column 1)\n  value.n\n  ^";
    assert_eq!(holds("value.n"), Err(told.to_owned()));
}

#[test]
fn errors_point_at_their_place() {
    for (source, column, message) in [
        ("", 1, "expected a value, found the end"),
        ("1 +", 4, "expected a value, found the end"),
        ("(1", 3, "expected `)`, found the end"),
        ("1 2", 3, "expected an operator or the end, found 2"),
        ("1 = 2", 3, "'=' means nothing here; write `==`"),
        ("true & true", 6, "'&' means nothing here; write `&&`"),
        ("true | true", 6, "'|' means nothing here; write `||`"),
        (
            "1 and 2",
            3,
            "expected an operator or the end, found and; write `&&`",
        ),
        (
            "1 or 2",
            3,
            "expected an operator or the end, found or; write `||`",
        ),
        ("[1, 2", 6, "expected `,` or `]`"),
        ("{1: 2}", 2, "expected the name of a field"),
        ("{a 2}", 4, "expected `:`"),
        ("value.", 7, "expected the name of a field"),
        ("value.5", 7, "expected the name of a field, found 5"),
        ("a ? b", 1, "there is no a"),
        ("true ? 1", 9, "expected `:`"),
        ("1 # 2", 3, "'#' means nothing here"),
        ("1 & 2", 3, "'&' means nothing here"),
        ("ä", 1, "'ä' means nothing here"),
        ("'ä' + x", 7, "there is no x"),
        ("frob(1)", 1, "there is no function frob (column 1)"),
        (
            "1 + raund(1)",
            5,
            "there is no function raund; did you mean \"round\"? (column 5)",
        ),
    ] {
        let error = Expression::new(source).expect_err(source);
        assert!(error.to_string().contains(message), "{source}: {error}");
        assert_eq!(error.column, column, "{source}: {error}");
    }
    let error = Expression::new("value.a +* 2").unwrap_err();
    assert_eq!(
        error.shown_in("value.a +* 2"),
        "expected a value, found `*` (column 10)\n  value.a +* 2\n           ^"
    );
    let error = evaluate("1 + value.t", &sample()).unwrap_err();
    assert_eq!(error.column, 3);
}

#[test]
fn everything_is_bounded() {
    let long = format!("'{}'", "x".repeat(5000));
    let error = Expression::new(&long).unwrap_err();
    assert_eq!(
        error.kind,
        ExpressionErrorKind::SourceTooLong { most: 4096 }
    );
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("abs(", ")"),
        ("!", ""),
        ("- ", ""),
        ("true ? 1 : ", ""),
    ] {
        let deep = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        assert!(Expression::new(&deep(60)).is_ok(), "{open}");
        let error = Expression::new(&deep(200)).unwrap_err();
        assert_eq!(
            error.kind,
            ExpressionErrorKind::TooDeep { most: 64 },
            "{open}"
        );
    }
    // What stands in a row is not deep.
    let row = format!("1{}", "+1".repeat(2000));
    assert_eq!(evaluate(&row, &Value::Null), Ok(json!(2001)));
    let path = format!("value{}", ".a".repeat(1500));
    assert_eq!(evaluate(&path, &Value::Null), Ok(Value::Null));
    // Nor can a result grow without limit.
    let large = json!("x".repeat(1 << 20));
    let many = ["value"; 600].join("+");
    let error = evaluate(&many, &large).unwrap_err();
    assert!(matches!(
        error.kind,
        ExpressionErrorKind::ResultTooLarge { .. }
    ));
    let many = format!("[{}]", ["value"; 40].join(","));
    assert!(evaluate(&many, &large).is_err());
}

/// A generator of its own: the same texts in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn random_texts_never_make_it_panic() {
    let parts = [
        "1",
        "2.5",
        "1e",
        "0",
        "9223372036854775807",
        "value",
        "values",
        "epoch",
        "now_ms",
        "port",
        "event_ms",
        ".",
        "x",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "'a'",
        "\"b\"",
        "'",
        "\\",
        "true",
        "false",
        "null",
        " ",
        "ä",
        "\n",
        "&",
        "min(",
        "max(",
        "len(",
        "split(",
        "join(",
        "num(",
        "str(",
        "default(",
        "mean(",
        "pow(",
        "keys(",
        ".list",
        ".n",
    ];
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let (mut compiled, mut computed) = (0, 0);
    for _ in 0..60_000 {
        let length = 1 + dice.below(12);
        let source: String = (0..length)
            .map(|_| parts[dice.below(parts.len())])
            .collect();
        match Expression::compile(&source, Names::Window) {
            Ok(expression) => {
                compiled += 1;
                let value = Payload::from(sample());
                let scope = MessageScope {
                    values: &json!([1, "x"]).into(),
                    event_ms: Some(1.0),
                    ..MessageScope::of(&value)
                };
                match expression.evaluate(&scope) {
                    Ok(_) => computed += 1,
                    Err(error) => drop(error.shown_in(&source)),
                }
            }
            Err(error) => {
                assert!(error.column >= 1);
                assert!(
                    error.column <= source.chars().count() + 1,
                    "{source:?}: {error}"
                );
                drop(error.shown_in(&source));
            }
        }
    }
    assert!(compiled > 500 && computed > 200, "{compiled} {computed}");
}

#[test]
fn values_that_json_does_not_have_are_looked_at() {
    let evaluate = |source: &str, value: &Payload| {
        let expression = Expression::new(source).expect("an expression");
        expression.evaluate(&MessageScope::of(value))
    };
    let bytes = Payload::from(b"hi".to_vec());
    assert_eq!(evaluate("value", &bytes), Ok(bytes.clone()));
    assert_eq!(evaluate("len(value)", &bytes), Ok(2.into()));
    let shown = evaluate("str(value)", &bytes);
    assert_eq!(shown, Ok(r#"{"$bytes":"aGk="}"#.into()));
    let nan = Payload::from(f64::NAN);
    assert_eq!(evaluate("exists(value)", &nan), Ok(false.into()));
    assert_eq!(evaluate("value == null", &nan), Ok(true.into()));
    assert_eq!(evaluate("default(value, 3)", &nan), Ok(3.into()));
    let opaque = Payload::from(vec![Payload::opaque(1_u8)]);
    assert_eq!(evaluate("value == value", &opaque), Ok(true.into()));
    let error = evaluate("str(value)", &opaque).expect_err("a Rust value");
    assert!(
        error.to_string().contains("a u8 cannot be written"),
        "{error}"
    );
}

#[test]
fn parts_in_very_many_places_do_not_hang_an_expression() {
    let evaluate = |source: &str, value: &Payload| {
        let expression = Expression::new(source).expect("an expression");
        expression.evaluate(&MessageScope::of(value))
    };
    let twice = |part: Payload| Payload::from(vec![part.clone(), part]);
    let (a, b) = (
        (0..60).fold(1.into(), |p, _| twice(p)),
        (0..60).fold(1.0.into(), |p, _| twice(p)),
    );
    let pair = Payload::map([("a", a.clone()), ("b", b)]);
    assert_eq!(evaluate("value.a == value.b", &pair), Ok(true.into()));
    assert_eq!(evaluate("len(value)", &a), Ok(2.into()));
    for source in ["value", "str(value)", "value + value"] {
        assert!(evaluate(source, &a).is_err(), "{source}");
    }
    let deep = (0..100_000).fold(Payload::Nil, |inner, _| vec![inner].into());
    assert_eq!(evaluate("value == value", &deep), Ok(true.into()));
    let record = Payload::map([("field", 1.into())]);
    let shared = (0..40).fold(record, |p, _| twice(p));
    let error = evaluate("value.field", &shared).expect_err("too many items");
    assert!(
        matches!(error.kind, ExpressionErrorKind::ResultTooLarge { .. }),
        "{error}"
    );
    let error = evaluate("value.field", &deep).expect_err("too deep");
    assert_eq!(error.kind, ExpressionErrorKind::ValueTooDeep { most: 100 });
}

#[test]
fn a_text_that_would_be_larger_than_memory_is_not_made() {
    let a = "a".repeat(1000);
    let million = format!("join(split('{a}', ''), '{a}')");
    let source = format!("join(split({million}, ''), {million})");
    let error = evaluate(&source, &Value::Null).expect_err("a terabyte");
    assert!(
        matches!(error.kind, ExpressionErrorKind::ResultTooLarge { .. }),
        "{error}"
    );
}

#[test]
fn the_least_whole_number_can_be_written() {
    gives("-9223372036854775808", Value::from(i64::MIN));
    gives("- 9223372036854775808 + 1", Value::from(i64::MIN + 1));
    gives("[1, -9223372036854775808][1]", Value::from(i64::MIN));
    fails("9223372036854775808", "is no number of 64 bits");
    fails("-9223372036854775809", "is no number of 64 bits");
    fails("--9223372036854775808", "does not fit");
}

#[test]
fn operators_of_other_languages_get_a_hint() {
    fails("not value.b", "there is no not; write `!` (column 1)");
    fails("not(value.b)", "there is no function not; write `!`");
    fails("value.b and true", "found and; write `&&`");
    fails("value.n = 7", "'=' means nothing here; write `==`");
    // A field may have such a name.
    gives("{and: 1}.and", json!(1));
}
