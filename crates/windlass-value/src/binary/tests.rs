use windlass_core::hash::SplitMix;

use super::*;

fn values() -> Vec<Payload> {
    let long = Payload::from("a text that is long enough to be shared");
    vec![
        Payload::Nil,
        Payload::Bool(false),
        Payload::Bool(true),
        Payload::Int(0),
        Payload::Int(-1),
        Payload::Int(63),
        Payload::Int(64),
        Payload::Int(i64::MIN),
        Payload::Int(i64::MAX),
        Payload::Float(-0.0),
        Payload::Float(f64::INFINITY),
        Payload::from(""),
        Payload::from("é"),
        Payload::from(vec![0; 300]),
        Payload::from(Vec::<Payload>::new()),
        Payload::map::<&str>([]),
        Payload::map([("a", 1.into()), ("", vec![Payload::Nil, 2.into()].into())]),
        Payload::Pid("{berlin@orders|1.2}".parse().expect("a PID")),
        vec![long.clone(), Payload::map([("k", long.clone())]), long].into(),
    ]
}

#[test]
fn values_come_back_as_they_were() {
    for value in values() {
        let bytes = value.to_bytes().expect("no Rust value");
        assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&value));
        for end in 0..bytes.len() {
            let error = Payload::from_bytes(&bytes[..end]);
            assert_eq!(error, Err(DecodeError::Truncated), "{value:?}");
        }
        let more = [&*bytes, &[0]].concat();
        let trailing = Err(DecodeError::Trailing(bytes.len()));
        assert_eq!(Payload::from_bytes(&more), trailing);
    }
    let opaque = Payload::from(vec![Payload::opaque(1_u8)]);
    assert_eq!(opaque.to_bytes(), Err(Unwritable::Opaque("u8")));
    assert_eq!(Payload::from_bytes(&[2, 0]), Err(DecodeError::Version(2)));
}

#[test]
fn small_values_take_few_bytes() {
    assert_eq!(Payload::Int(-3).to_bytes(), Ok(vec![1, 3, 5]));
    assert_eq!(
        Payload::from("hi").to_bytes(),
        Ok(vec![1, 5, 2, b'h', b'i'])
    );
}

#[test]
fn what_is_shared_stays_shared() {
    // 2^40 values.
    let shared = (0..40).fold(Payload::Nil, |part, _| vec![part.clone(), part].into());
    let bytes = shared.to_bytes().expect("no Rust value");
    assert!(bytes.len() < 300, "{} bytes", bytes.len());
    assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&shared));
    let text = Payload::from("x".repeat(1000));
    let list = Payload::from(vec![text; 1000]);
    assert!(list.to_bytes().is_ok_and(|bytes| bytes.len() < 5000));
}

#[test]
fn any_number_of_levels_comes_back() {
    let deep = (0..200_000).fold(Payload::Nil, |inner, _| vec![inner].into());
    let bytes = deep.to_bytes().expect("no Rust value");
    assert_eq!(Payload::from_bytes(&bytes).as_ref(), Ok(&deep));
}

#[test]
fn a_part_cannot_contain_itself() {
    let bytes = [VERSION, SHARED, LIST, 1, SAME, 0];
    assert_eq!(Payload::from_bytes(&bytes), Err(DecodeError::Malformed(4)));
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = SplitMix::new(19);
    let whole: Vec<Vec<u8>> = values().iter().filter_map(|v| v.to_bytes().ok()).collect();
    for round in 0..20_000 {
        let mut bytes = whole[round % whole.len()].clone();
        let at = random.next_u64() as usize % bytes.len();
        bytes[at] = random.next_u64() as u8;
        if let Ok(payload) = Payload::from_bytes(&bytes) {
            let again = payload.to_bytes().expect("no Rust value");
            // Not `==`: a NaN is not equal to itself.
            let back = Payload::from_bytes(&again).map(|back| format!("{back:?}"));
            assert_eq!(back, Ok(format!("{payload:?}")));
        }
    }
}
