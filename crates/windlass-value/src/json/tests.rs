use serde_json::json;

use super::writer::{MOST_LEVELS, MOST_VALUES};
use super::*;

#[test]
fn plain_json_comes_back_as_it_was() {
    for value in [
        json!(null),
        json!(true),
        json!(3),
        json!(i64::MIN),
        json!(2.5),
        json!(1.0),
        json!("text"),
        json!([1, {"a": 2}, [], {}]),
        json!({"$bytes": "aGk="}),
        json!({"$bytes": "no base64!"}),
        json!({"$bytes": "aGk=", "more": 1}),
        json!({"$map": {"$pid": 1}}),
    ] {
        assert_eq!(Payload::from_json(value.clone()).to_json(), Ok(value));
    }
    assert_eq!(
        Payload::from_json(json!([{"$bytes": "aGk="}])),
        Payload::from(vec![Payload::from(b"hi".to_vec())])
    );
    assert_eq!(Payload::Float(f64::NAN).to_json(), Ok(Value::Null));
    let pid = "{orders|1.2}".parse().map(Payload::Pid).expect("a PID");
    assert_eq!(pid.to_json(), Ok(json!("{orders|1.2}")));
    assert_eq!(
        Payload::from(vec![Payload::object(1_u8)]).to_json(),
        Err(Unwritable::Opaque("u8"))
    );
}

#[test]
fn what_is_recorded_comes_back_as_it_was() {
    let pid = "{berlin@orders|1.2}"
        .parse()
        .map(Payload::Pid)
        .expect("a PID");
    let values = [
        Payload::Nil,
        Payload::Bool(true),
        Payload::Int(i64::MIN),
        Payload::Float(1.0),
        Payload::Float(-0.0),
        Payload::Float(0.1 + 0.2),
        Payload::Float(f64::MIN_POSITIVE / 3.0),
        Payload::Float(f64::INFINITY),
        Payload::Float(f64::NEG_INFINITY),
        Payload::from("a \"b\"\n"),
        Payload::from(vec![0, 15, 255]),
        Payload::from(vec![Payload::Int(1), Payload::Nil]),
        Payload::map([("f", Payload::Int(1)), ("m", Payload::Nil)]),
        Payload::map([("$bytes", Payload::from("aGk="))]),
        Payload::map([("$map", Payload::map([("$map", Payload::Nil)]))]),
        Payload::map([("!", Payload::Nil), ("$", Payload::Nil), ("a", pid)]),
        Payload::map::<&str>([]),
        Payload::Pid("{orders|1.2}".parse().expect("a PID")),
        Payload::object(Unrecorded("geometry::Pose".to_owned())),
    ];
    for value in values {
        let text = value.to_recorded().expect("JSON").to_string();
        let read = serde_json::from_str(&text).expect("JSON");
        let read = Payload::from_recorded(read).expect("recorded");
        assert_eq!(read, value, "{text}");
        // 0.0 and -0.0 are equal, and yet not the same.
        assert_eq!(format!("{read:?}"), format!("{value:?}"));
    }
    let opaque = Payload::opaque(1_u8);
    assert_eq!(opaque.to_recorded(), Err(Unwritable::Opaque("u8")));
    let named = recorded::or_type_name::serialize(&opaque, serde_json::value::Serializer);
    assert_eq!(named.ok(), Some(json!({"$opaque": "u8"})));
    let read = Payload::from_recorded(json!([1, {"k": {"$opaque": "u8"}}])).expect("recorded");
    assert_eq!(read.unrecorded(), Some("u8"));
    let nan = Payload::Float(f64::NAN).to_recorded().expect("JSON");
    let nan = Payload::from_recorded(nan).expect("recorded");
    assert!(nan.as_f64().is_some_and(f64::is_nan));
}

#[test]
fn what_was_not_recorded_is_refused() {
    for wrong in [
        json!({"$bytes": "0"}),
        json!({"$bytes": 1}),
        json!({"$float": "x"}),
        json!({"$pid": "x"}),
        json!({"$what": "x"}),
        json!({"$map": 1}),
        json!({"$pid": "{orders|1.2}", "more": 1}),
        json!([{"$map": [1]}]),
    ] {
        assert!(Payload::from_recorded(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_too_deep_or_too_large_is_refused() {
    let nested = |levels| (0..levels).fold(Payload::Nil, |inner, _| vec![inner].into());
    let deep = nested(MOST_LEVELS - 1);
    let text = deep.to_json().expect("not too deep").to_string();
    assert_eq!(serde_json::from_str::<Payload>(&text).ok(), Some(deep));
    let too_deep = Err(Unwritable::TooDeep(MOST_LEVELS));
    assert_eq!(nested(MOST_LEVELS).to_json(), too_deep);
    assert_eq!(nested(100_000).to_recorded(), too_deep);
    let maps = (0..60).fold(Payload::Nil, |inner, _| Payload::map([("$", inner)]));
    assert_eq!(maps.to_recorded(), too_deep);
    // 2^30 values.
    let shared = (0..30).fold(Payload::Nil, |part, _| vec![part.clone(), part].into());
    assert_eq!(shared.to_json(), Err(Unwritable::TooLarge(MOST_VALUES)));
}
