//! Everything that is asked to stop stops in time, or is named; and nothing stays behind.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use windlass::time::Instant;

use crate::run::{Folder, interrupt, started};
use crate::support::{Ended, command, windlass};

/// Ten times what the commands are given.
const LIMIT: Duration = Duration::from_secs(10);

const LANES: [&str; 4] = [
    "{type: event_loop}",
    "{type: thread_pool, max_threads: 2}",
    "{type: isolated_thread}",
    "{type: fixed_rate, period_ms: 10, wall_clock_enabled: true}",
];

/// A graph with one component, which is called once and does not return.
fn endless(lane: &str) -> Folder {
    let graph = format!(
        "schema_version: 2
graph: {{name: endless, kind: internal_test}}
lanes: {{main: {lane}}}
components:
  - id: spins
    type: windlass.lua
    execution: {{lane: main}}
    config:
      ports: {{inputs: [], outputs: [out]}}
      script: |
        function execute()
          print('ready')
          while true do pcall(function() while true do end end) end
        end
edges: []
"
    );
    Folder::new("endless", &[("endless.yaml", &graph)])
}

/// Waits for the end, which has to come in time.
fn ended(mut child: Child, mut out: BufReader<ChildStdout>) -> Ended {
    let began = Instant::now();
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it prints");
    let mut err = String::new();
    let mut pipe = child.stderr.take().expect("a pipe");
    pipe.read_to_string(&mut err).expect("it complains");
    let code = child.wait().expect("it ends").code();
    let took = began.elapsed();
    assert!(took < LIMIT, "{took:?}: {err}");
    Ended {
        code,
        out: rest,
        err,
    }
}

/// A second signal, so long after the first that it is another request.
fn interrupt_again(child: &Child) {
    let slept = Command::new("sleep").arg("0.15").status();
    assert!(slept.expect("sleep runs").success());
    interrupt(child);
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn one_signal_ends_a_graph_whose_component_does_not_return() {
    for lane in LANES {
        let folder = endless(lane);
        let file = folder.path("endless.yaml");
        for signal in ["-INT", "-TERM"] {
            let arguments = ["graph", "run", &file, "--steps", "3", "--stop-ms", "1000"];
            let (child, out) = started(&arguments, "ready");
            send(signal, child.id());
            let ended = ended(child, out);
            assert_eq!(ended.code, Some(124), "{lane}: {}{}", ended.out, ended.err);
            assert_eq!(ended.line("stop_reason"), "stop_requested");
            let said = ended.line("error");
            assert!(said.contains("spins: was ended by force"), "{said}");
            let told = "note: stopping graph endless: waiting for component spins to return, \
                        at most 1000 ms; a second Ctrl-C or SIGTERM ends it at once";
            assert!(ended.err.contains(told), "{}", ended.err);
        }
    }
}

#[test]
fn one_signal_ends_every_command_that_runs_a_graph() {
    let folder = endless(LANES[0]);
    let file = folder.path("endless.yaml");
    let commands: [&[&str]; 4] = [
        &["graph", "observe", &file, "--format", "json-summary"],
        &["graph", "metrics", &file],
        &["graph", "trace", &file],
        &["run", &file],
    ];
    for arguments in commands {
        // Options of `run` stand before what is the script's.
        let mut arguments = arguments.to_vec();
        let at = if arguments[0] == "run" { 1 } else { 2 };
        arguments.splice(at..at, ["--stop-ms", "1000"]);
        let (child, out) = started(&arguments, "ready");
        interrupt(&child);
        let ended = ended(child, out);
        let said = format!("{arguments:?}: {}{}", ended.out, ended.err);
        assert_eq!(ended.code, Some(124), "{said}");
        assert!(said.contains("ended by force"), "{said}");
    }
}

#[test]
fn the_duration_ends_a_graph_whose_component_does_not_return() {
    let folder = endless(LANES[0]);
    let file = folder.path("endless.yaml");
    let arguments = [
        "graph",
        "run",
        &file,
        "--duration-ms",
        "200",
        "--stop-ms",
        "800",
    ];
    let (child, out) = started(&arguments, "ready");
    let ended = ended(child, out);
    assert_eq!(ended.code, Some(124), "{}{}", ended.out, ended.err);
    assert_eq!(ended.line("stop_reason"), "duration_bound");
}

#[test]
fn a_script_is_told_what_is_waited_for_and_a_second_signal_does_not_wait() {
    let stubborn = "function main()
        print('ready')
        pcall(sleep, 1000)
        print('told')
        while true do pcall(sleep, 1000) end
    end";
    let folder = Folder::new("stubborn", &[("main.lua", stubborn)]);
    let (child, mut out) = started(&["run", &folder.path("main.lua")], "ready");
    interrupt(&child);
    let mut line = String::new();
    out.read_line(&mut line).expect("it prints");
    assert_eq!(line, "told\n");
    interrupt_again(&child);
    let ended = ended(child, out);
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let told = "waiting for its processes to end, at most 10000 ms; a second Ctrl-C or SIGTERM ends it at once";
    assert!(ended.err.contains(told), "{}", ended.err);
    assert!(ended.err.contains("by a second signal"), "{}", ended.err);
}

#[test]
fn calls_of_the_library_that_have_no_end_stop_in_time() {
    let calls = [
        "table.insert(setmetatable({}, {__len = function() return math.maxinteger - 1 end}), 1, 2)",
        "table.move({}, 1, math.maxinteger - 1, 2)",
    ];
    for call in calls {
        let text = format!("function main() print('ready') {call} end");
        let folder = Folder::new("library", &[("main.lua", &text)]);
        let arguments = ["run", "--stop-ms", "1000", &folder.path("main.lua")];
        let (child, out) = started(&arguments, "ready");
        interrupt(&child);
        let ended = ended(child, out);
        assert_eq!(ended.code, Some(124), "{call}: {}", ended.err);
        assert!(ended.err.contains("and was killed"), "{}", ended.err);
    }
}

/// As `timeout(1)` does: it signals its child, and then the child's group.
#[test]
fn two_signals_at_once_are_one_request() {
    let main = "function main()
        print('ready')
        pcall(sleep, 1000)
        sleep(0.2)
        print('cleaned up')
        return 7
    end";
    let folder = Folder::new("twice", &[("main.lua", main)]);
    let (child, out) = started(&["run", &folder.path("main.lua")], "ready");
    let twice = format!("kill -TERM {0}; kill -TERM {0}", child.id());
    let sent = Command::new("sh").args(["-c", &twice]).status();
    assert!(sent.expect("kill runs").success());
    let ended = ended(child, out);
    assert_eq!(ended.code, Some(7), "{}", ended.err);
    assert_eq!(ended.out, "cleaned up\n");
}

#[test]
fn another_process_that_does_not_stop_is_killed_and_named() {
    let main = "function main()
        process.spawn('stubborn.lua', process.self())
        receive()
        print('ready')
        pcall(sleep, 1000)
        return 0
    end";
    let stubborn = "function main(parent)
        send(parent, 'ready')
        while true do pcall(sleep, 1000) end
    end";
    let files = [("main.lua", main), ("stubborn.lua", stubborn)];
    let folder = Folder::new("child", &files);
    let arguments = ["run", "--stop-ms", "1000", &folder.path("main.lua")];
    let (child, out) = started(&arguments, "ready");
    interrupt(&child);
    let ended = ended(child, out);
    assert_eq!(ended.code, Some(124), "{}", ended.err);
    assert!(ended.err.contains("stubborn.lua"), "{}", ended.err);
    assert!(ended.err.contains("and was killed"), "{}", ended.err);
}

#[test]
fn processes_that_spin_in_the_library_do_not_freeze_the_others() {
    let main = "function main()
        for i = 1, 4 do process.spawn('spin.lua') end
        sleep(0.2)
        print('still here')
        return 3
    end";
    let spin = "function main() table.move({}, 1, math.maxinteger - 1, 2) end";
    let folder = Folder::new("spin-all", &[("main.lua", main), ("spin.lua", spin)]);
    let file = folder.path("main.lua");
    let ended = windlass(&["run", "--workers", "2", "--stop-ms", "500", &file]);
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert_eq!(ended.out, "still here\n");
}

/// A graph with a command that cares about no signal, and how to see that it has ended: all that it
/// has started holds the pipe open.
struct Stubborn {
    folder: Folder,
    child: Child,
    pipe: BufReader<ChildStdout>,
    reader: Child,
}

impl Stubborn {
    fn start(name: &str, script: &str) -> Stubborn {
        let graph = format!(
            r#"schema_version: 2
graph: {{name: stubborn, kind: internal_test}}
lanes: {{main: {{type: event_loop}}}}
components:
  - id: command
    type: windlass.exec
    execution: {{lane: main}}
    config:
      command: [sh, -c, "trap '' TERM INT; exec 9>\"$0\"; {script}", PIPE]
      ports: {{outputs: [out]}}
      stop_ms: 60000
edges: []
"#
        );
        let folder = Folder::new(name, &[]);
        let pipe = folder.path("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is mkfifo").success());
        let file = folder.path("graph.yaml");
        std::fs::write(&file, graph.replace("PIPE", &pipe)).expect("a file");
        let child = command(&["graph", "run", &file, "--until-idle"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut reader = Command::new("timeout")
            .args(["30", "cat", &pipe])
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is timeout");
        let mut pipe = BufReader::new(reader.stdout.take().expect("a pipe"));
        let mut line = String::new();
        pipe.read_line(&mut line).expect("a line");
        assert_eq!(line, "started\n");
        Stubborn {
            folder,
            child,
            pipe,
            reader,
        }
    }

    /// Waits until the command, and whatever it has started, has ended.
    fn wait_until_gone(mut self) {
        let mut rest = String::new();
        self.pipe.read_to_string(&mut rest).expect("its end");
        let status = self.reader.wait().expect("it ends");
        assert!(status.success(), "the command goes on: {status}");
        drop(self.folder);
    }
}

#[test]
fn a_second_signal_leaves_nothing_of_a_command_behind() {
    let script = "sleep 600 & echo started >&9; while true; do wait; done";
    let mut stubborn = Stubborn::start("second", script);
    let mut err = BufReader::new(stubborn.child.stderr.take().expect("a pipe"));
    interrupt(&stubborn.child);
    let mut line = String::new();
    err.read_line(&mut line).expect("it says something");
    assert!(
        line.contains("a second Ctrl-C or SIGTERM ends it at once"),
        "{line}"
    );
    interrupt_again(&stubborn.child);
    assert_eq!(
        stubborn.child.wait().expect("it ends").code(),
        Some(130),
        "{line}"
    );
    stubborn.wait_until_gone();
}

#[test]
fn a_command_that_does_not_stop_in_time_is_ended_with_all_that_it_has_started() {
    let script = "sleep 600 & echo started >&9; while true; do wait; done";
    let mut stubborn = Stubborn::start("late", script);
    // It is killed when the run has ended without it.
    send("-TERM", stubborn.child.id());
    let mut err = String::new();
    let mut pipe = stubborn.child.stderr.take().expect("a pipe");
    pipe.read_to_string(&mut err).expect("it complains");
    let code = stubborn.child.wait().expect("it ends").code();
    assert_eq!(code, Some(124), "{err}");
    stubborn.wait_until_gone();
}

#[test]
fn a_command_ends_when_the_program_is_killed() {
    let mut stubborn = Stubborn::start("killed", "echo started >&9; exec sleep 600");
    send("-KILL", stubborn.child.id());
    assert_eq!(stubborn.child.wait().expect("it ends").code(), None);
    stubborn.wait_until_gone();
}

#[test]
fn no_option_of_scripts_is_ignored_for_graphs() {
    let folder = endless(LANES[0]);
    let file = folder.path("endless.yaml");
    for option in ["--memory", "--slice-ms", "--workers"] {
        let refused = windlass(&["run", option, "8", &file]).refused();
        let said = format!("{option} is for scripts");
        assert!(refused.err.contains(&said), "{}", refused.err);
    }
}

#[test]
fn the_exit_codes_are_one_table() {
    let table = |arguments: &[&str]| {
        let help = windlass(arguments).fine().out;
        let at = help.find("Exit codes:");
        help[at.unwrap_or_else(|| panic!("no table: {help}"))..].to_owned()
    };
    let first = table(&["--help"]);
    for code in ["0", "1", "2", "3", "4", "124", "130"] {
        assert!(first.contains(&format!("\n  {code} ")), "{code}: {first}");
    }
    for arguments in [
        &["run", "--help"][..],
        &["graph", "run", "--help"],
        &["graph", "observe", "--help"],
    ] {
        assert_eq!(table(arguments), first, "{arguments:?}");
    }
}
