//! Guards that own their lock, guards for a part of a value, and locks in statics.

use std::sync::Arc;

use windlass_core::block_on;
use windlass_sync::lock::{
    MappedMutexGuard, Mutex, MutexGuard, Notify, OnceCell, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
};

use crate::support::{counting, panic_message, poll_once, poll_with};

static LOCK: Mutex<u32> = Mutex::const_new(1);
static SHARED: RwLock<u32> = RwLock::const_with_max_readers(2, 2);
static PERMITS: Semaphore = Semaphore::const_new(3);
static NEWS: Notify = Notify::const_new();
static MADE: OnceCell<u32> = OnceCell::const_new_with(4);
static EMPTY: OnceCell<u32> = OnceCell::const_new();

#[test]
fn locks_in_statics_work_as_others_do() {
    block_on(async {
        *LOCK.lock().await += 1;
        assert_eq!(*LOCK.lock().await, 2);
        let readers = (SHARED.read().await, SHARED.read().await);
        assert!(SHARED.try_read().is_err(), "two readers are the most");
        drop(readers);
        *SHARED.write().await = 7;
        assert_eq!(*SHARED.read().await, 7);
        assert_eq!(PERMITS.acquire_many(3).await.unwrap().num_permits(), 3);
        NEWS.notify_one();
        NEWS.notified().await;
        assert_eq!(*MADE.get_or_init(async || unreachable!()).await, 4);
        assert_eq!(EMPTY.get(), None);
        assert_eq!(*EMPTY.get_or_init(async || 5).await, 5);
    });
}

#[test]
fn a_guard_of_a_part_holds_the_whole_lock() {
    let lock = Mutex::new((1, String::from("a")));
    let text = MutexGuard::map(lock.try_lock().unwrap(), |pair| &mut pair.1);
    assert!(lock.try_lock().is_err());
    let mut text = MappedMutexGuard::map(text, String::as_mut_str);
    text.make_ascii_uppercase();
    assert_eq!((&*text, text.to_string()), ("A", String::from("A")));
    drop(text);
    assert_eq!(lock.try_lock().unwrap().1, "A");
}

#[test]
fn a_part_that_is_not_there_gives_the_guard_back() {
    let lock = Mutex::new(Some(1));
    let guard = lock.try_lock().unwrap();
    let mut guard = MutexGuard::try_map(guard, |value| value.as_mut().filter(|v| **v > 1))
        .expect_err("it is not greater than 1");
    *guard = Some(2);
    let part = MutexGuard::try_map(guard, Option::as_mut).unwrap();
    let part = MappedMutexGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    assert_eq!(*part, 2);
    drop(part);
    assert!(lock.try_lock().is_ok());
}

#[test]
fn a_panic_in_the_choice_of_a_part_unlocks() {
    let lock = Mutex::new(0);
    let guard = lock.try_lock().unwrap();
    let message = panic_message(|| {
        let _ = MutexGuard::map(guard, |_| -> &mut u32 { panic!("no part") });
    });
    assert!(message.contains("no part"));
    assert!(lock.try_lock().is_ok());
    let owned = Arc::new(Mutex::new(0));
    let guard = owned.clone().try_lock_owned().unwrap();
    panic_message(|| {
        drop(OwnedMutexGuard::map(guard, |_| -> &mut u32 {
            panic!("no part")
        }))
    });
    assert!(owned.try_lock().is_ok());
}

#[test]
fn an_owned_guard_keeps_its_lock_alive_and_moves_between_threads() {
    let lock = Arc::new(Mutex::new(vec![1, 2]));
    let guard = lock.clone().blocking_lock_owned();
    let weak = Arc::downgrade(&lock);
    drop(lock);
    let last = OwnedMutexGuard::map(guard, |list| list.last_mut().unwrap());
    std::thread::spawn(move || {
        let mut last = last;
        *last += 40;
        assert_eq!(*last, 42);
    })
    .join()
    .unwrap();
    assert!(weak.upgrade().is_none(), "the guard was its last owner");
}

#[test]
fn readers_with_parts_keep_writers_out() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let first = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.0);
    let second = OwnedRwLockReadGuard::map(lock.clone().try_read_owned().unwrap(), |pair| &pair.1);
    assert_eq!((*first, *second), (1, 2));
    assert!(lock.try_write().is_err());
    drop(first);
    assert!(lock.clone().try_write_owned().is_err());
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&second), &lock));
    let second = OwnedRwLockReadGuard::try_map(second, |_| None::<&u8>).unwrap_err();
    drop(second);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_writer_of_a_part_keeps_everyone_out() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let mut part = RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.0);
    *part = 10;
    assert!(lock.try_read().is_err());
    drop(part);
    let owned = lock.clone().try_write_owned().unwrap();
    let mut part = OwnedRwLockWriteGuard::map(owned, |pair| &mut pair.1);
    *part = 20;
    assert!(lock.try_read().is_err());
    drop(part);
    assert_eq!(*lock.try_read().unwrap(), (10, 20));
}

#[test]
fn a_writer_that_goes_on_as_a_reader_lets_readers_in_and_no_writer() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let mut writer = lock.try_write().unwrap();
    writer.0 = 5;
    let reader = RwLockWriteGuard::downgrade_map(writer, |pair| &pair.0);
    assert_eq!(*reader, 5);
    assert!(lock.try_read().is_ok());
    assert!(lock.try_write().is_err());
    drop(reader);
    let owned = lock.clone().try_write_owned().unwrap();
    let owned = OwnedRwLockWriteGuard::try_downgrade_map(owned, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err(), "it is a writer still");
    let reader = owned.downgrade();
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(reader);
    assert!(lock.try_write().is_ok(), "every permit came back");
}

#[test]
fn an_owned_writer_waits_for_readers() {
    let lock = Arc::new(RwLock::new(0));
    let reader = lock.try_read().unwrap();
    let mut writing = Box::pin(lock.clone().write_owned());
    let (count, waker) = counting();
    assert!(poll_with(writing.as_mut(), &waker).is_pending());
    drop(reader);
    assert_eq!(count.count(), 1);
    *block_on(writing) = 3;
    assert_eq!(*block_on(lock.clone().read_owned()), 3);
}

#[test]
fn permits_split_and_merge_without_loss() {
    let semaphore = Arc::new(Semaphore::new(5));
    let mut all = semaphore.try_acquire_many(5).unwrap();
    let two = all.split(2).unwrap();
    assert!(all.split(4).is_none());
    assert_eq!((all.num_permits(), two.num_permits()), (3, 2));
    drop(two);
    assert_eq!(semaphore.available_permits(), 2);
    all.merge(semaphore.try_acquire().unwrap());
    drop(all);
    assert_eq!(semaphore.available_permits(), 5);
    let mut owned = semaphore.clone().try_acquire_many_owned(4).unwrap();
    let one = owned.split(1).unwrap();
    owned.merge(one);
    assert_eq!(owned.num_permits(), 4);
    let other = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let message = panic_message(|| owned.merge(other));
    assert!(message.contains("different semaphore"), "{message}");
    assert_eq!(owned.num_permits(), 4, "the panic broke nothing");
    drop(owned);
    assert_eq!(semaphore.available_permits(), 5);
}

#[test]
fn the_last_waiter_can_be_woken_first() {
    let notify = Arc::new(Notify::new());
    let mut first = Box::pin(notify.notified());
    let mut last = Box::pin(notify.clone().notified_owned());
    let ((one, first_waker), (two, last_waker)) = (counting(), counting());
    assert!(poll_with(first.as_mut(), &first_waker).is_pending());
    assert!(poll_with(last.as_mut(), &last_waker).is_pending());
    notify.notify_last();
    assert_eq!((one.count(), two.count()), (0, 1));
    assert!(poll_with(last.as_mut(), &last_waker).is_ready());
    notify.notify_last();
    assert_eq!(one.count(), 1);
    drop(first);
    // The wake-up of the dropped wait is kept.
    block_on(notify.notified());
}

#[test]
fn a_wake_up_of_the_last_waiter_passes_to_the_one_before_it() {
    let notify = Notify::new();
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(notify.notified())).collect();
    for wait in &mut waits {
        assert!(poll_once(wait).is_pending());
    }
    notify.notify_last();
    drop(waits.pop());
    assert!(poll_once(&mut waits[1]).is_ready());
    assert!(poll_once(&mut waits[0]).is_pending());
    // The one that is done passes nothing on.
    drop(waits.pop());
    assert!(poll_once(&mut waits[0]).is_pending());
}

#[test]
fn a_wait_that_has_ended_stays_ready_and_passes_nothing_on() {
    let notify = Notify::new();
    let mut at_once = Box::pin(notify.notified());
    notify.notify_one();
    let mut waited = Box::pin(notify.notified());
    assert!(poll_once(&mut at_once).is_ready());
    assert!(poll_once(&mut waited).is_pending());
    notify.notify_one();
    for done in [&mut at_once, &mut waited] {
        assert!(poll_once(done).is_ready());
        assert!(done.as_mut().enable());
        assert!(poll_once(done).is_ready());
    }
    drop((at_once, waited));
    assert!(poll_once(&mut Box::pin(notify.notified())).is_pending());
}

#[test]
fn a_lock_that_lets_no_reader_in_is_refused() {
    let by_new = panic_message(|| _ = RwLock::with_max_readers(1, 0));
    let by_const = panic_message(|| _ = RwLock::const_with_max_readers(1, 0));
    for message in [by_new, by_const] {
        assert!(message.contains("with 0 readers"), "{message}");
    }
}

#[test]
fn debug_shows_the_data_of_a_free_lock() {
    let (mutex, lock) = (Mutex::new(5), RwLock::new(6));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 5 }");
    assert_eq!(format!("{lock:?}"), "RwLock { data: 6 }");
    let _held = (mutex.try_lock().unwrap(), lock.try_write().unwrap());
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
}

#[test]
fn a_cell_is_cloned_compared_and_emptied() {
    let mut cell = OnceCell::from(3);
    assert_eq!(cell.clone(), OnceCell::new_with(Some(3)));
    assert_ne!(cell, OnceCell::new());
    assert!(cell.set(4).unwrap_err().is_already_init_err());
    assert_eq!(cell.take(), Some(3));
    assert!(cell.set(5).is_ok());
}

#[test]
fn a_permit_knows_its_semaphore() {
    static PERMITS: Semaphore = Semaphore::const_new(1);
    let permit = PERMITS.try_acquire().unwrap();
    let semaphore: &'static Semaphore = permit.semaphore();
    assert_eq!(semaphore.available_permits(), 0);
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);
}
