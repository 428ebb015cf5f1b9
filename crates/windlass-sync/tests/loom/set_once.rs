//! A value that is set once.

use std::sync::Arc;

use windlass_sync::lock::SetOnce;

use crate::support::Tracked;

#[test]
fn set_once_a_wait_meets_the_value() {
    loom::model(|| {
        let cell = Arc::new(SetOnce::new());
        let setter = cell.clone();
        let value = Tracked::new(7);
        let thread = loom::thread::spawn(move || {
            value.write(8);
            assert!(setter.set(value).is_ok());
        });
        // A lost wake-up is a deadlock, a missing order a race on the value.
        assert_eq!(windlass_core::block_on(cell.wait()).read(), 8);
        thread.join().unwrap();
    });
}
