//! The buffer that is read into.

use std::mem::MaybeUninit;

use bytes::BufMut;
use windlass_io::io::ReadBuf;

#[test]
fn what_is_filled_is_initialised_and_the_rest_is_not() {
    let mut memory = [MaybeUninit::uninit(); 8];
    let mut buffer = ReadBuf::uninit(&mut memory);
    assert_eq!((buffer.capacity(), buffer.remaining()), (8, 8));
    assert!(buffer.initialized().is_empty());
    buffer.put_slice(b"abc");
    assert_eq!(buffer.filled(), b"abc");
    assert_eq!(buffer.initialized(), b"abc");
    buffer.filled_mut()[0] = b'x';
    assert_eq!(buffer.filled(), b"xbc");
    assert_eq!(buffer.remaining(), 5);
}

#[test]
fn initialised_memory_is_zero_once_and_keeps_its_values() {
    let mut memory = [MaybeUninit::new(7); 6];
    let mut buffer = ReadBuf::uninit(&mut memory);
    assert_eq!(buffer.initialize_unfilled_to(3), [0, 0, 0]);
    buffer.initialized_mut()[1] = 9;
    // What holds a value is left alone; what held none is zero, whatever was there.
    assert_eq!(buffer.initialize_unfilled(), [0, 9, 0, 0, 0, 0]);
    buffer.advance(2);
    assert_eq!(buffer.filled(), [0, 9]);
    buffer.clear();
    assert!(buffer.filled().is_empty());
    assert_eq!(buffer.initialized().len(), 6);
    buffer.set_filled(6);
    assert_eq!(buffer.remaining(), 0);
}

#[test]
fn a_part_is_a_buffer_of_its_own() {
    let mut memory = [1; 5];
    let mut buffer = ReadBuf::new(&mut memory);
    buffer.put_slice(b"a");
    let mut part = buffer.take(2);
    assert_eq!((part.capacity(), part.initialized().len()), (2, 0));
    part.put_slice(b"bc");
    assert_eq!(buffer.filled(), b"a");
    buffer.advance(2);
    assert_eq!(buffer.filled(), b"abc");
    assert_eq!(buffer.take(100).capacity(), 2);
}

#[test]
fn it_is_a_target_of_the_bytes_crate() {
    let mut memory = [MaybeUninit::uninit(); 4];
    let mut buffer = ReadBuf::uninit(&mut memory);
    buffer.put_u16(0x0102);
    assert_eq!(buffer.remaining_mut(), 2);
    buffer.put_bytes(5, 2);
    assert_eq!(buffer.filled(), [1, 2, 5, 5]);
    assert!(!buffer.has_remaining_mut());
}

#[test]
#[should_panic(expected = "filled must not become larger than initialized")]
fn memory_without_a_value_cannot_be_filled_by_a_claim() {
    let mut memory = [MaybeUninit::uninit(); 4];
    ReadBuf::uninit(&mut memory).advance(1);
}

#[test]
#[should_panic(expected = "buf.len() must fit in remaining(); buf.len() = 3, remaining() = 2")]
fn a_slice_that_does_not_fit_is_refused() {
    ReadBuf::new(&mut [0; 2]).put_slice(b"abc");
}

#[test]
#[should_panic(expected = "n overflows remaining")]
fn no_more_is_initialised_than_remains() {
    ReadBuf::new(&mut [0; 2]).initialize_unfilled_to(3);
}

#[test]
fn its_debug_text_has_the_three_lengths() {
    let mut memory = [MaybeUninit::uninit(); 4];
    let mut buffer = ReadBuf::uninit(&mut memory);
    buffer.initialize_unfilled_to(2);
    buffer.advance(1);
    let text = "ReadBuf { filled: 1, initialized: 2, capacity: 4 }";
    assert_eq!(format!("{buffer:?}"), text);
}
