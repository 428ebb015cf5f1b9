//! V8, and what is no recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_actor::{Host, Message};
use windlass_record::RecordingError;
use windlass_value::Payload;
use windlass_vm::{BuildError, Channel, Placement, Task, Vm};

use crate::support::{real, simulated, vm};
use crate::tiny::{Code, Machine, Program, program};

const MS: Duration = Duration::from_millis(1);

/// A folder of its own that goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-vm-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Guests that ask the clock and the dice, wait for each other, for time, for blocking work and for
/// the outside.
fn guests(channel: &Channel) -> Vec<Program> {
    let child = program([Code::Random, Code::Sleep(2 * MS), Code::Return]);
    let counts = |count: i64| {
        program([
            Code::Push(count.into()),
            Code::Store(0),
            Code::Loop(0, 2),
            Code::Now,
            Code::Return,
        ])
    };
    vec![
        program([
            Code::Spawn(child.clone(), 0),
            Code::Spawn(child, 1),
            Code::Await(0),
            Code::Await(1),
            Code::Add,
            Code::Send(channel.clone()),
            Code::Own,
            Code::Return,
        ]),
        program([
            Code::Block(|| Ok(Payload::Int(std::process::id().into()))),
            Code::Receive(channel.clone()),
            Code::Add,
            Code::Return,
        ]),
        program([
            Code::Hear("order", None),
            Code::Store(0),
            Code::Try(6),
            Code::Hear("never", Some(3 * MS)),
            Code::Return,
            Code::Return,
            Code::Load(0),
            Code::Return,
        ]),
        // Many slices.
        counts(30_000),
        counts(50_000),
        // The guest is cancelled.
        program([
            Code::Try(3),
            Code::Sleep(Duration::MAX),
            Code::Return,
            Code::Return,
        ]),
        // Killed.
        program([Code::Hear("never", None)]),
        program([
            Code::Spawn(program([Code::Throw("on purpose")]), 0),
            Code::Try(4),
            Code::Await(0),
            Code::Return,
            Code::Return,
        ]),
    ]
}

fn start(vm: &Vm) -> Vec<Task> {
    let channel = vm.channel(0);
    let guests = guests(&channel);
    let spawn = |program| vm.spawn(Machine::new(program)).expect("a task");
    guests.iter().map(spawn).collect()
}

async fn ends(tasks: &[Task]) -> Vec<String> {
    let mut ends = Vec::new();
    for task in tasks {
        let exit = task.join().await;
        ends.push(format!("{} {:?}", exit.reason, exit.value));
    }
    ends
}

async fn record(path: &Path) -> Vec<String> {
    let vm = vm(Placement::Reactor)
        .slice_count(5_000)
        .on_uncaught(drop)
        .record(path)
        .build()
        .expect("a VM");
    let tasks = start(&vm);
    let host = Host::current().expect("a host");
    let order = Payload::map([("tea", 2.into()), ("price", 1.5.into())]);
    host.send(tasks[2].pid(), Message::new("order", order))
        .expect("sent");
    windlass_runtime::time::sleep(10 * MS).await;
    tasks[5].cancel("enough");
    tasks[6].kill();
    let ends = ends(&tasks).await;
    vm.end_recording().await.expect("it was written");
    assert_eq!(vm.recording_error(), None);
    ends
}

async fn replay(from: &Path, to: Option<&Path>) -> (Vec<String>, Result<(), RecordingError>) {
    let mut builder = vm(Placement::Reactor).on_uncaught(drop).replay(from);
    if let Some(to) = to {
        builder = builder.record(to);
    }
    let vm = builder.build().expect("a VM");
    let tasks = start(&vm);
    let replayed = vm.replayed().await;
    (ends(&tasks).await, replayed)
}

/// Without PIDs, of which there are two: those of then and those of now.
fn plain(ends: &[String]) -> Vec<String> {
    let kept = ends.iter().filter(|end| !end.contains('{'));
    kept.cloned().collect()
}

#[test]
fn v8_a_replay_is_the_recording_byte_for_byte() {
    let folder = Folder::new();
    real(2, || async {
        for round in 0..10 {
            let (first, second) = (folder.file("first"), folder.file("second"));
            let then = record(&first).await;
            let (now, replayed) = replay(&first, Some(&second)).await;
            assert_eq!(replayed, Ok(()), "round {round}");
            assert_eq!(plain(&now), plain(&then));
            let first = fs::read_to_string(first).expect("a recording");
            let second = fs::read_to_string(second).expect("a recording");
            assert!(first.lines().count() > 50, "{first}");
            let last = first.lines().last().unwrap_or_default();
            assert!(last.starts_with("{\"end\":{}"), "{last}");
            assert!(first == second, "they differ");
        }
    });
}

#[test]
fn v8_in_the_simulator() {
    let folder = Folder::new();
    simulated(10, || async {
        let (first, second) = (folder.file("first"), folder.file("second"));
        record(&first).await;
        let (_, replayed) = replay(&first, Some(&second)).await;
        assert_eq!(replayed, Ok(()));
        let first = fs::read(first).expect("a recording");
        let second = fs::read(second).expect("a recording");
        assert!(first == second, "they differ");
    });
}

#[test]
fn other_code_is_found_out() {
    let folder = Folder::new();
    real(2, || async {
        let file = folder.file("recording");
        record(&file).await;
        let vm = vm(Placement::Reactor).replay(&file).build().expect("a VM");
        let other = program([Code::Sleep(MS), Code::Return]);
        let tasks: Vec<Task> = (0..8)
            .map(|_| vm.spawn(Machine::new(&other)).expect("a task"))
            .collect();
        let replayed = vm.replayed().await;
        assert!(
            matches!(replayed, Err(RecordingError::Diverged { .. })),
            "{replayed:?}"
        );
        let text = replayed.map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.contains("replay the same code")));
        // The host lives, and no guest hangs.
        for task in &tasks {
            task.join().await;
        }
    });
}

#[test]
fn a_recording_that_breaks_off_is_replayed_up_to_there() {
    let folder = Folder::new();
    real(2, || async {
        let file = folder.file("recording");
        record(&file).await;
        let text = fs::read_to_string(&file).expect("a recording");
        for share in [1, 3, 7, 9] {
            let cut = text.len() * share / 10;
            fs::write(&file, &text[..cut]).expect("written");
            let (_, replayed) = replay(&file, None).await;
            assert!(
                matches!(replayed, Err(RecordingError::Truncated { .. })),
                "{share}: {replayed:?}"
            );
        }
    });
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new();
    real(2, || async {
        let file = folder.file("file");
        let open = |placement| vm(placement).replay(&file).build().map(drop);
        let missing = open(Placement::Reactor);
        assert!(
            matches!(
                &missing,
                Err(BuildError::Recording(RecordingError::File { .. }))
            ),
            "{missing:?}"
        );
        for foreign in ["", "hello", "{\"windlass_vm_recording\":1}", "\u{0}\u{1}"] {
            fs::write(&file, foreign).expect("written");
            let refused = open(Placement::Reactor);
            assert!(
                matches!(
                    &refused,
                    Err(BuildError::Recording(RecordingError::Foreign { .. }))
                ),
                "{foreign}: {refused:?}"
            );
        }
        let header = |workers: u32| {
            format!(
                "{{\"windlass_recording\":\"vm\",\"version\":3,\"build\":\"0.1.0\",\
                 \"header\":{{\"workers\":{workers},\"slice_count\":10}}}}\n"
            )
        };
        fs::write(&file, header(0)).expect("written");
        let bad = open(Placement::Reactor);
        assert!(
            matches!(
                &bad,
                Err(BuildError::Recording(RecordingError::BadLine {
                    line: 1,
                    ..
                }))
            ),
            "{bad:?}"
        );
        let text = format!("{}{{\"what\":1}}\n{{\"end\":{{}}}}\n", header(2));
        fs::write(&file, text).expect("written");
        let bad = open(Placement::Reactor);
        assert!(
            matches!(
                &bad,
                Err(BuildError::Recording(RecordingError::BadLine {
                    line: 2,
                    ..
                }))
            ),
            "{bad:?}"
        );
        let pool = open(Placement::Pool);
        assert!(matches!(&pool, Err(BuildError::NotOnThePool)), "{pool:?}");
        let nowhere = vm(Placement::Reactor)
            .record(folder.file("no/such/folder"))
            .build();
        assert!(
            matches!(
                &nowhere,
                Err(BuildError::Recording(RecordingError::File { .. }))
            ),
            "{nowhere:?}"
        );
    });
}

/// The reader of a recording takes 127 levels of JSON, and no stack is endless.
#[test]
fn a_payload_of_many_levels_is_refused_by_a_recording_and_the_guests_go_on() {
    let deep = |levels: usize| {
        (0..levels).fold(Payload::Nil, |inner, level| match level % 2 {
            0 => Payload::from(vec![inner]),
            _ => Payload::map([("inner", inner)]),
        })
    };
    for (levels, refused) in [(99, false), (100, true), (1_000_000, true)] {
        let folder = Folder::new();
        real(2, || async {
            let vm = vm(Placement::Reactor)
                .record(folder.file("recording"))
                .build()
                .expect("a VM");
            let hears = program([Code::Hear("*", None), Code::Return]);
            let task = vm.spawn(Machine::new(&hears)).expect("a task");
            let host = Host::current().expect("a host");
            host.send(task.pid(), Message::new("any", deep(levels)))
                .expect("sent");
            assert!(task.join().await.value == deep(levels));
            let ended = vm.end_recording().await;
            assert_eq!(ended.is_err(), refused, "{levels} levels: {ended:?}");
        });
        if !refused {
            real(1, || async {
                let file = folder.file("recording");
                let replay = vm(Placement::Reactor).replay(&file).build();
                replay.expect("what is written can be read");
            });
        }
    }
}

#[test]
fn what_cannot_be_written_down_is_said_and_the_guests_go_on() {
    let folder = Folder::new();
    real(2, || async {
        let vm = vm(Placement::Reactor)
            .record(folder.file("recording"))
            .build()
            .expect("a VM");
        let hears = program([Code::Hear("*", None), Code::Return]);
        let task = vm.spawn(Machine::new(&hears)).expect("a task");
        let host = Host::current().expect("a host");
        let opaque = Message::new("any", Payload::opaque(7_u8));
        host.send(task.pid(), opaque).expect("sent");
        assert_eq!(task.join().await.value.downcast_ref(), Some(&7_u8));
        let error = vm.end_recording().await;
        let said = error.expect_err("it cannot be written").to_string();
        assert!(
            said.starts_with("a message cannot be recorded: a u8"),
            "{said}"
        );
    });
}
