//! Unsafe code lives in few places.

use super::Problem;
use crate::text;

/// Where unsafe code may be: directories of crates, and modules below them. No modules means
/// everywhere.
const ALLOWED: &[(&str, &[&str])] = &[
    ("crates/windlass-core/", &[]),
    (
        "crates/windlass-runtime/src/",
        &["coroutine", "fork_join", "driver", "os"],
    ),
    (
        "crates/windlass-sync/src/",
        &["channel", "lock", "readiness", "time", "wait_list"],
    ),
    (
        "crates/windlass-io/src/",
        &["os", "io/async_fd", "io/read_buf", "io/futures/fill_buf"],
    ),
    ("crates/windlass-lua/src/", &["preempt"]),
];

/// The example of what C code and coroutines do together.
const CALLS_C: &str = "crates/windlass/examples/callbacks.rs";

/// Finds unsafe code where none may be. The benchmark package and integration tests are their own
/// business.
pub(super) fn check(file: &str, source: &str) -> Vec<Problem> {
    if may_hold_unsafe(file) {
        return Vec::new();
    }
    text::code_only(source)
        .lines()
        .enumerate()
        .filter(|(_, line)| text::has_word(line, "unsafe", false))
        .map(|(index, _)| Problem::Unsafe {
            file: file.to_owned(),
            line: index + 1,
        })
        .collect()
}

/// A crate root that has to forbid unsafe code does.
pub(super) fn check_root(file: &str, source: &str) -> Option<Problem> {
    let forbids = text::code_only(source)
        .split("#![forbid(")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .any(|lints| text::has_word(lints, "unsafe_code", false));
    (!forbids).then(|| Problem::NotForbidden {
        file: file.to_owned(),
    })
}

fn may_hold_unsafe(file: &str) -> bool {
    let is_test = file.starts_with("crates/") && file.split('/').nth(2) == Some("tests");
    is_test
        || file.starts_with("bench/")
        || file == CALLS_C
        || ALLOWED.iter().any(|(dir, modules)| {
            file.strip_prefix(dir).is_some_and(|below| {
                modules.is_empty() || modules.iter().any(|module| is_module(below, module))
            })
        })
}

/// Whether a path below `src` belongs to a module: its file, its directory, or a file
/// `module_part.rs`.
fn is_module(below: &str, module: &str) -> bool {
    below
        .strip_prefix(module)
        .is_some_and(|rest| rest.starts_with(['/', '.', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_modules_may_be_unsafe() {
        let places = [
            ("crates/windlass-core/src/queue/ring.rs", true),
            ("crates/windlass-sync/src/lock.rs", true),
            ("crates/windlass-sync/src/lock/mutex.rs", true),
            ("crates/windlass-runtime/src/fork_join_scope.rs", true),
            ("crates/windlass-runtime/tests/it/leaks.rs", true),
            ("crates/windlass-sync/src/locksmith.rs", false),
            ("crates/windlass-runtime/src/handle.rs", false),
            ("crates/windlass-io/src/io/read_buf.rs", true),
            ("crates/windlass-io/src/io/copy.rs", false),
            ("crates/windlass-lua/src/preempt.rs", true),
            ("crates/windlass-lua/src/lib.rs", false),
            ("crates/windlass/src/lib.rs", false),
            ("xtask/src/main.rs", false),
            ("crates/windlass/examples/callbacks.rs", true),
            ("crates/windlass/examples/walk.rs", false),
        ];
        for (file, allowed) in places {
            let found = check(file, "fn a() {}\nunsafe fn b() {}\n");
            assert_eq!(found.is_empty(), allowed, "{file}");
        }
    }

    #[test]
    fn a_root_forbids_in_code_not_in_prose() {
        assert_eq!(check_root("a.rs", "//! x\n#![forbid(unsafe_code)]\n"), None);
        assert_eq!(
            check_root("a.rs", "#![forbid(unused_must_use, unsafe_code)]\n"),
            None
        );
        assert!(check_root("a.rs", "#![deny(unsafe_code)]\n").is_some());
        assert!(check_root("a.rs", "//! #![forbid(unsafe_code)]\n").is_some());
    }
}
