//! Clock, random, replay.

use windlass_graph::RunOptions;
use windlass_runtime::Runtime;

use crate::stage::{Scratch, Stage, contains};

/// A source on a lane of 10 ms.
fn on_a_rate(type_name: &str, config: &str) -> Stage {
    let stage = Stage::source(type_name, config);
    stage.with("type: event_loop", "type: fixed_rate, period_ms: 10")
}

/// What it publishes in so many epochs.
fn in_epochs(stage: &Stage, epochs: u64) -> Vec<String> {
    let result = Runtime::simulated(1).block_on(stage.prepared().run(RunOptions::steps(epochs)));
    assert!(result.is_ok(), "{:?}", result.errors);
    stage.log.take()
}

#[test]
fn a_clock_publishes_the_time_of_its_lane() {
    for (config, expected) in [
        ("", ["in=0@0", "in=10000000@10", "in=20000000@20"]),
        ("format: ms", ["in=0.0@0", "in=10.0@10", "in=20.0@20"]),
        ("format: seconds", ["in=0.0@0", "in=0.01@10", "in=0.02@20"]),
    ] {
        assert_eq!(in_epochs(&on_a_rate("windlass.clock", config), 3), expected);
    }
    let told = Stage::source("windlass.clock", "format: hours").fails();
    contains(
        &told,
        &["config.format is \"hours\"; allowed are ns, ms, seconds"],
    );
}

fn random(config: &str, count: u64) -> Vec<f64> {
    let number = |line: String| {
        let number = line.trim_start_matches("in=").split('@').next().unwrap();
        number.parse().unwrap()
    };
    let seen = in_epochs(&on_a_rate("windlass.random", config), count);
    seen.into_iter().map(number).collect()
}

#[test]
fn random_numbers_are_the_same_in_every_run_and_differ_by_seed() {
    assert_eq!(random("", 20), random("", 20));
    assert_eq!(random("seed: 1", 20), random("seed: 1", 20));
    assert_ne!(random("seed: 1", 20), random("seed: 2", 20));
    assert_ne!(random("seed: 1", 20), random("", 20));
}

#[test]
fn random_numbers_are_where_they_should_be() {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let uniform = random("min: -2, max: 4", 2000);
    assert!(uniform.iter().all(|n| (-2.0..4.0).contains(n)));
    assert!((mean(&uniform) - 1.0).abs() < 0.2, "{}", mean(&uniform));
    let normal = random("kind: normal, mean: 5, deviation: 2", 2000);
    assert!((mean(&normal) - 5.0).abs() < 0.2, "{}", mean(&normal));
    let squares: Vec<f64> = normal.iter().map(|n| (n - 5.0).powi(2)).collect();
    assert!((mean(&squares) - 4.0).abs() < 0.6, "{}", mean(&squares));
    let integers = random("kind: integer, min: 1, max: 6", 2000);
    for face in 1..=6 {
        let count = integers.iter().filter(|n| **n == f64::from(face)).count();
        assert!((230..440).contains(&count), "{face}: {count}");
    }
    assert_eq!(random("kind: integer, min: 3, max: 3", 3), [3.0; 3]);
    for (config, what) in [
        (
            "min: 2, max: 1",
            "config.min is 2, and more than config.max, 1",
        ),
        ("kind: integer, min: 2, max: 1", "more than config.max"),
        (
            "kind: integer, min: 0.5",
            "config.min has to be a whole number",
        ),
        ("kind: normal, deviation: -1", "config.deviation is -1"),
        ("kind: poisson", "allowed are uniform, normal, integer"),
        ("seed: x", "config.seed has to be a whole number"),
    ] {
        contains(&Stage::source("windlass.random", config).fails(), &[what]);
    }
}

#[test]
fn a_replay_publishes_when_the_clock_gets_there() {
    let lines = [
        r#"{"at_ms": 0, "value": "a"}"#,
        r#"{"at_ms": 10, "value": 1}"#,
        "",
        r#"{"at_ms": 12.5, "value": null}"#,
        r#"{"at_ms": 35, "k": 2}"#,
    ];
    let file = Scratch::new(lines.join("\n"));
    let stage = on_a_rate("windlass.replay", &file.config());
    let all = [
        r#"in="a"@0"#,
        "in=1@10",
        "in=null@12.5",
        r#"in={"at_ms":35,"k":2}@35"#,
    ];
    for (epochs, count) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4)] {
        assert_eq!(in_epochs(&stage, epochs), all[..count]);
    }
    assert_eq!(stage.seen(), all, "it ends when it is at its end");
}

#[test]
fn a_replay_takes_its_time_from_the_field_it_is_told() {
    let file = Scratch::new("{\"t\": 0, \"x\": 1}\n");
    let stage = Stage::source("windlass.replay", &format!("{}, at: t", file.config()));
    assert_eq!(stage.seen(), [r#"in={"t":0,"x":1}@0"#]);
    let told = Stage::source("windlass.replay", &file.config()).fails();
    contains(&told, &["line 1", "has no field at_ms"]);
    for wrong in ["{\"at_ms\": -1}", "{\"at_ms\": \"x\"}", "5", "{"] {
        let file = Scratch::new(wrong);
        let told = Stage::source("windlass.replay", &file.config()).fails();
        contains(&told, &["line 1"]);
    }
}
