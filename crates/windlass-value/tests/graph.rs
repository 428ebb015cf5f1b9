//! What messages carry: taking it out, comparing it, and what there may be one of.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

use serde_json::json;
use windlass_value::graph::{Data, Payload};

#[derive(Debug, Clone, PartialEq)]
struct Pose(f64);

#[test]
fn an_object_is_taken_out_without_a_copy_if_nobody_else_has_it() {
    #[derive(PartialEq)]
    struct Fragile(u8);
    impl Clone for Fragile {
        fn clone(&self) -> Fragile {
            panic!("copied without need")
        }
    }
    assert!(
        Payload::object(Fragile(7))
            .take::<Fragile>()
            .is_ok_and(|f| f.0 == 7)
    );
    let shared = Payload::object(Pose(1.0));
    let other = shared.clone();
    assert_eq!(shared.take::<Pose>(), Ok(Pose(1.0)));
    assert_eq!(other.get::<Pose>(), Some(&Pose(1.0)));
}

#[test]
fn a_payload_of_another_type_comes_back_as_it_was() {
    assert_eq!(Payload::from(7).take::<Pose>(), Err(Payload::from(7)));
    let back = Payload::object(Pose(1.0)).take::<String>().unwrap_err();
    assert_eq!(back.take::<Pose>(), Ok(Pose(1.0)));
    let back = Payload::object(Pose(1.0))
        .take_unique::<Pose>()
        .unwrap_err();
    assert_eq!(back.get::<Pose>(), Some(&Pose(1.0)));
}

#[test]
fn of_a_unique_object_there_is_one_only() {
    let unique = Payload::unique(Pose(2.0));
    assert!(!unique.may_be_copied() && unique != unique.clone());
    let other = unique.clone();
    let back = unique.take_unique::<Pose>().unwrap_err();
    drop(other);
    assert_eq!(back.take_unique::<Pose>(), Ok(Pose(2.0)));
}

#[test]
fn equal_values_are_equal_payloads() {
    assert_eq!(Payload::object(Pose(1.0)), Payload::object(Pose(1.0)));
    assert_ne!(Payload::object(Pose(1.0)), Payload::object(Pose(2.0)));
    assert_ne!(Payload::object(1_u8), Payload::object(1_u16));
    assert_ne!(Payload::from(1), Payload::from(1.0));
}

#[test]
fn json_and_back() {
    for value in [
        json!(null),
        json!(true),
        json!(3),
        json!(2.5),
        json!("text"),
        json!([1, {"a": 2}]),
    ] {
        assert_eq!(Payload::from_json(value.clone()).to_json(), Some(value));
    }
    assert_eq!(Payload::object(Pose(1.0)).to_json(), None);
    assert_eq!(Payload::from(vec![1_u8, 2]).to_json(), Some(json!([1, 2])));
}

#[test]
fn typed_ports_read_what_fits() {
    assert_eq!(f64::from_payload(&Payload::from(3)), Some(3.0));
    assert_eq!(i64::from_payload(&Payload::from(3.5)), None);
    assert_eq!(i32::from_payload(&Payload::from(i64::MAX)), None);
    assert_eq!(
        String::from_payload(&Payload::from("a")),
        Some("a".to_owned())
    );
    assert_eq!(Vec::<u8>::from_payload(&Payload::from("a")), Some(vec![97]));
}
