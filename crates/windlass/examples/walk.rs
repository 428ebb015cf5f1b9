//! A recursive walk that borrows from the stack above it, in parallel: `cargo run --example walk`.
//!
//! A recursive-descent evaluator of nested expressions. Each bracket is a coroutine of its own that
//! borrows the text and the statistics of its caller, and waits (for a slow lookup of names)
//! without blocking a worker.

#![allow(
    clippy::disallowed_types,
    reason = "a program of its own, not part of the runtime"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass::coroutine::{self, Scope, ScopedJoinHandle};
use windlass::{Runtime, time};

struct Statistics {
    brackets: AtomicUsize,
    lookups: AtomicUsize,
}

/// A number that takes a while to find out: stands for a database, a file, a remote service.
fn look_up(name: &str, statistics: &Statistics) -> u64 {
    coroutine::wait(time::sleep(Duration::from_millis(20)));
    statistics.lookups.fetch_add(1, Ordering::Relaxed);
    name.bytes().map(u64::from).sum()
}

/// The inside of each top-level bracket, and every word outside of one.
fn parts(text: &str) -> Vec<(bool, &str)> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | ' ' if depth == 0 => {
                if start < at {
                    parts.push((false, &text[start..at]));
                }
                depth += usize::from(letter == '(');
                start = at + 1;
            }
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    parts.push((true, &text[start..at]));
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push((false, &text[start..]));
    }
    parts
}

/// The sum of all names in `text`. Brackets are evaluated in parallel, to any depth.
fn evaluate(text: &str, statistics: &Statistics) -> u64 {
    coroutine::scope(|scope| {
        let sums: Vec<_> = parts(text)
            .into_iter()
            .map(|(is_bracket, part)| start(scope, is_bracket, part, statistics))
            .collect();
        sums.into_iter()
            .map(|sum| sum.join().expect("no part panics"))
            .sum()
    })
}

fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    is_bracket: bool,
    part: &'env str,
    statistics: &'env Statistics,
) -> ScopedJoinHandle<'scope, u64> {
    scope.spawn(move || {
        if is_bracket {
            statistics.brackets.fetch_add(1, Ordering::Relaxed);
            evaluate(part, statistics)
        } else {
            look_up(part, statistics)
        }
    })
}

fn main() -> windlass::Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let text = "a (b c (d e)) f ((g) (h (i j)) k) l".to_owned();
    let walk = coroutine::Builder::new()
        .name("walk")
        .spawn_on(runtime.handle(), move || {
            // On this coroutine's stack, and borrowed by all the others.
            let statistics = Statistics {
                brackets: AtomicUsize::new(0),
                lookups: AtomicUsize::new(0),
            };
            let began = time::Instant::now();
            let sum = evaluate(&text, &statistics);
            println!(
                "{text} = {sum}: {} brackets, {} lookups of 20 ms each, in {:?}",
                statistics.brackets.into_inner(),
                statistics.lookups.into_inner(),
                began.elapsed(),
            );
            sum
        });
    assert_eq!(
        coroutine::wait(walk)?,
        "abcdefghijkl".bytes().map(u64::from).sum::<u64>()
    );
    Ok(())
}
