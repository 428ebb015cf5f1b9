//! Commands in any language, here mostly in that of the shell.

use std::io::Read;
use std::time::Instant;

use windlass_graph::StopReason;
use windlass_runtime::Runtime;

use crate::stage::{LIMIT, Scratch, Stage, contains, told, until_idle};

const IN_OUT: &str = "ports: {inputs: [in], outputs: [out]}";

/// A shell script as a command; in it `say` publishes a value and `end` is done with a message. Its
/// `seq` and its `value` are known for each message, which `on_message` handles.
fn script(on_message: &str) -> Scratch {
    Scratch::new(format!(
        r#"
say() {{ printf '{{"type":"publish","port":"%s","value":%s}}\n' "$1" "$2"; }}
end() {{ printf '{{"type":"done","seq":%s}}\n' "$seq"; }}
while IFS= read -r line; do
  case "$line" in *'"type":"stop"'*) break;; esac
  seq=$(printf '%s' "$line" | sed 's/.*"seq":\([0-9]*\).*/\1/')
  value=$(printf '%s' "$line" | sed 's/.*"value":\(.*\)}}$/\1/')
  {on_message}
done
"#
    ))
}

/// What the test's source plays goes through this script.
fn through(script: &Scratch, config: &str, epochs: &str) -> Stage {
    let config = format!("command: [sh, '{}'], {config}", script.path());
    Stage::through("windlass.exec", &config, &["out"], epochs)
}

#[test]
fn a_command_that_answers_each_message_lets_the_run_end() {
    let script = script(r#"say out "$value"; say out "[$value]"; end"#);
    let config = format!("{IN_OUT}, reply: per_message, max_pending: 2");
    let stage = through(&script, &config, "[[1, 2], [{k: [3]}, 'x y']]");
    let result = stage.run();
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(result.stop_reason, StopReason::Idle);
    let expected = [
        "out=1",
        "out=[1]",
        "out=2",
        "out=[2]",
        r#"out={"k":[3]}"#,
        r#"out=[{"k":[3]}]"#,
        r#"out="x y""#,
        r#"out=["x y"]"#,
    ];
    assert_eq!(stage.log.take(), expected);
}

#[test]
fn a_command_is_told_all_about_a_message() {
    let file = Scratch::missing();
    let copy = format!(r#"printf '%s\n' "$line" >> '{}'; end"#, file.path());
    let script = script(&copy);
    let config = format!("{IN_OUT}, reply: per_message");
    let stage = through(&script, &config, "[[1], [{value: 2, at: 5}, {bytes: hi}]]");
    let result = stage.run();
    assert!(result.is_ok(), "{:?}", result.errors);
    let lines: Vec<serde_json::Value> = file
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = serde_json::json!([
        {"type": "message", "port": "in", "seq": 1, "epoch": 1, "event_ns": null, "value": 1},
        {"type": "message", "port": "in", "seq": 2, "epoch": 2, "event_ns": 5_000_000, "value": 2},
        {"type": "message", "port": "in", "seq": 3, "epoch": 2, "event_ns": null, "value": {"$bytes": "aGk="}},
    ]);
    assert_eq!(serde_json::Value::from(lines), expected);
}

#[test]
fn a_command_without_inputs_is_a_source() {
    let script = Scratch::new(
        r#"
echo '{"type":"log","level":"info","text":"hello"}'
echo '{"type":"publish","port":"out","value":{"$bytes":"aGk="},"event_ns":7000000}'
echo
echo '{"type":"publish","value":"at out"}'
printf '{"type":"publish","port":"out","value":null}'
"#,
    );
    let config = format!(
        "command: [sh, '{}'], ports: {{outputs: [out]}}",
        script.path()
    );
    let stage = Stage::source("windlass.exec", &config);
    let result = stage.run();
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(result.stop_reason, StopReason::Idle);
    let expected = [r#"in={"$bytes":"aGk="}@7"#, r#"in="at out""#, "in=null"];
    assert_eq!(stage.log.take(), expected);
}

#[test]
fn a_command_has_the_environment_and_the_directory_it_is_given() {
    let script =
        Scratch::new(r#"printf '{"type":"publish","value":"%s %s"}\n' "$GREETING" "$PWD""#);
    let config = format!(
        "command: [sh, '{}'], ports: {{outputs: [out]}}, env: {{GREETING: 5}}, dir: /",
        script.path()
    );
    let stage = Stage::source("windlass.exec", &config);
    assert!(stage.run().is_ok());
    assert_eq!(stage.log.take(), [r#"in="5 /""#]);
}

#[test]
fn a_command_that_dies_is_started_again_and_gets_what_it_had_not_answered() {
    let mark = Scratch::missing();
    let die_once = format!(
        r#"if [ "$seq" = 2 ] && [ ! -e '{0}' ]; then : > '{0}'; exit 3; fi; say out "$value"; end"#,
        mark.path()
    );
    let script = script(&die_once);
    let config = format!("{IN_OUT}, reply: per_message, restart: {{backoff_ms: 1}}");
    let stage = through(&script, &config, "[[1, 2, 3], [4]]");
    let result = stage.run();
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(stage.log.take(), ["out=1", "out=2", "out=3", "out=4"]);
}

#[test]
fn a_command_that_dies_too_often_fails_with_its_last_words() {
    let script = Scratch::new("echo 'something is missing' >&2; exit 3");
    let config = format!("{IN_OUT}, restart: {{max: 2, backoff_ms: 1}}");
    let stage = through(&script, &config, "[[1]]");
    let told = told(&stage.run());
    contains(
        &told,
        &[
            "ended with exit status: 3",
            "3 times within 60s",
            "something is missing",
        ],
    );
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let config = format!("command: [/nonexistent/program, x], {IN_OUT}");
    let result = Stage::through("windlass.exec", &config, &["out"], "[[1]]").run();
    contains(&told(&result), &["cannot start /nonexistent/program x"]);
    // There are no commands in a simulation.
    let config = format!("command: [cat], {IN_OUT}");
    let told = Stage::through("windlass.exec", &config, &["out"], "[[1]]").fails();
    contains(&told, &["cannot start cat", "simulation"]);
}

#[test]
fn garbage_is_told_and_what_is_right_is_published() {
    let huge = "x".repeat(5000);
    let script = Scratch::new(format!(
        r#"
echo 'no json'
echo '{{"type":"dance"}}'
echo '{{"type":"publish","port":"side","value":1}}'
echo '{{"type":"publish","port":"out"}}'
echo '{{"type":"publish","value":1,"event_ns":"x"}}'
echo '{{"type":"log","level":"loud","text":"x"}}'
echo '{huge}'
printf '\377\376\n'
echo '{{"type":"publish","value":"fine"}}'
"#
    ));
    let config = format!(
        "command: [sh, '{}'], ports: {{outputs: [out]}}, max_line_bytes: 1000",
        script.path()
    );
    let stage = Stage::source("windlass.exec", &config).forgiving("in");
    let result = stage.run();
    let told = told(&result);
    contains(
        &told,
        &[
            "\"no json\" came from the command, and is not JSON",
            "its type is neither publish, log nor done",
            "names a port that is not there; there are: out",
            "has no value to publish",
            "event_ns that is no whole number",
            "no level that is known",
            "longer than config.max_line_bytes",
        ],
    );
    assert_eq!(result.errors.len(), 8, "{told}");
    assert_eq!(stage.log.take(), [r#"in="fine""#]);
}

#[test]
fn an_answer_to_nothing_is_told() {
    let script = script(r#"seq=99; end"#);
    let config = format!("{IN_OUT}, reply: per_message");
    let told = told(&through(&script, &config, "[[1]]").run());
    contains(&told, &["done with message 99, which it does not have"]);
}

#[test]
fn a_command_is_asked_to_stop_and_its_input_ends() {
    let mark = Scratch::missing();
    let script = Scratch::new(format!(
        r#"
echo '{{"type":"publish","value":"up"}}'
while IFS= read -r line; do printf '%s\n' "$line" >> '{0}'; done
echo ended >> '{0}'
"#,
        mark.path()
    ));
    let live = through(&script, IN_OUT, "[]").start();
    live.log.wait_for(1);
    live.stop_well();
    assert_eq!(mark.text(), "{\"type\":\"stop\"}\nended\n");
}

#[test]
fn what_a_command_says_last_is_heard_though_it_has_ended() {
    // It answers when it is asked to stop, after as much as a pipe holds, and is gone before that
    // is read.
    let script = Scratch::new(
        r#"
read -r line
seq=$(printf '%s' "$line" | sed 's/.*"seq":\([0-9]*\).*/\1/')
echo '{"type":"publish","value":"up"}'
read -r stop
words=$(for n in $(seq 600); do echo '{"type":"log","level":"debug","text":"still to do"}'; done)
printf '%s\n{"type":"done","seq":%s}\n' "$words" "$seq"
"#,
    );
    let config = format!("{IN_OUT}, reply: per_message");
    for _ in 0..5 {
        let live = through(&script, &config, "[[1]]").start();
        live.log.wait_for(1);
        live.stop_well();
    }
}

#[test]
fn a_command_that_ignores_everything_is_killed() {
    let script = Scratch::new(
        r#"
trap '' TERM
printf '{"type":"publish","value":%s}\n' $$
while :; do sleep 1; done
"#,
    );
    let config = format!("{IN_OUT}, stop_ms: 50");
    let live = through(&script, &config, "[]").start();
    let seen = live.log.wait_for(1);
    let id = seen[0].trim_start_matches("out=").to_owned();
    let began = Instant::now();
    live.stop_well();
    assert!(began.elapsed() < LIMIT);
    assert!(
        !std::path::Path::new(&format!("/proc/{id}")).exists(),
        "{id} lives"
    );
}

#[test]
fn a_command_that_takes_nothing_does_not_keep_the_run_from_ending() {
    let script = Scratch::new("echo '{\"type\":\"publish\",\"value\":\"up\"}'; exec sleep 100");
    // More than a pipe holds.
    let texts = vec![format!("'{}'", "x".repeat(4000)); 50];
    let config = format!("{IN_OUT}, stop_ms: 50, max_pending: 1000");
    let live = through(&script, &config, &format!("[[{}]]", texts.join(", "))).start();
    live.log.wait_for(1);
    let told = told(&live.stop());
    contains(&told, &["ended, and was not done with", "messages"]);
}

#[test]
fn messages_wait_on_their_edges_while_the_command_is_busy() {
    let script = script(r#"say out "$value"; end"#);
    let config = format!("{IN_OUT}, reply: per_message, max_pending: 1");
    let numbers: Vec<String> = (0..40).map(|n| format!("[{n}]")).collect();
    let stage = through(&script, &config, &format!("[{}]", numbers.join(", ")));
    let result = stage.run();
    assert!(result.is_ok(), "{:?}", result.errors);
    let expected: Vec<String> = (0..40).map(|n| format!("out={n}")).collect();
    assert_eq!(stage.log.take(), expected);
    let deepest = result.metrics.of("runtime.channel.max_depth", "e").unwrap();
    assert!(deepest > 1.0, "{deepest}");
}

#[test]
fn a_run_that_is_dropped_takes_its_command_along() {
    let pipe = Scratch::missing();
    let made = std::process::Command::new("mkfifo")
        .arg(pipe.path())
        .status();
    assert!(made.unwrap().success());
    // The other end of the pipe is closed when the last of them has ended.
    let script = Scratch::new(format!(
        "exec 3> '{}'; sleep 100 & echo '{{\"type\":\"publish\",\"value\":1}}'; wait",
        pipe.path()
    ));
    let config = format!(
        "command: [sh, '{}'], ports: {{outputs: [out]}}",
        script.path()
    );
    let stage = Stage::source("windlass.exec", &config);
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let prepared = stage.prepared();
    let run = runtime.spawn(async move { prepared.run(until_idle()).await });
    let mut open = std::fs::File::open(pipe.path()).unwrap();
    stage.log.wait_for(1);
    run.abort();
    let mut rest = String::new();
    open.read_to_string(&mut rest).unwrap();
    assert!(runtime.block_on(run).is_err());
}

#[test]
fn wrong_settings_are_told() {
    for (config, what) in [
        ("ports: {}", "config.command is missing"),
        ("command: [], ports: {}", "config.command is missing"),
        (
            "command: cat, ports: {}",
            "config.command has to be a list of texts",
        ),
        ("command: [cat]", "config.ports is missing"),
        (
            "command: [cat], ports: {sideways: [x]}",
            "config.ports.sideways",
        ),
        (
            "command: [cat], ports: {inputs: [in], outputs: [other]}",
            "an edge names the output out",
        ),
        (
            "command: [cat], ports: {inputs: [other], outputs: [out]}",
            "an edge names the input in",
        ),
        (
            "command: [cat], ports: {inputs: [in], outputs: [out]}, reply: never",
            "allowed are free, per_message",
        ),
        (
            "command: [cat], ports: {inputs: [in], outputs: [out]}, restart: {most: 1}",
            "config.restart has no field most",
        ),
        (
            "command: [cat], ports: {inputs: [in], outputs: [out]}, env: {A: [1]}",
            "config.env.A",
        ),
        (
            "command: [cat], ports: {inputs: [in], outputs: [out]}, max_pending: 0",
            "config.max_pending",
        ),
    ] {
        let stage = Stage::through("windlass.exec", config, &["out"], "[]");
        contains(&stage.fails(), &[what]);
    }
}
