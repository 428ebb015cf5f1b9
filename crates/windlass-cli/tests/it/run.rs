//! `windlass run`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, command, example, windlass};

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = Folder(
            std::env::temp_dir().join(format!("windlass-run-{name}-{}", std::process::id())),
        );
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).expect("a folder");
        for (file, text) in files {
            fs::write(folder.0.join(file), text).expect("a file");
        }
        folder
    }

    pub(crate) fn path(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_script_prints_logs_and_ends_with_a_code() {
    let main = "function main(a, b) print('printed', a, b) log.info('logged') return 7 end";
    let folder = Folder::new("code", &[("main.lua", main)]);
    for placement in ["pool", "reactor"] {
        let ended = windlass(&[
            "run",
            "--placement",
            placement,
            &folder.path("main.lua"),
            "x",
            "--y",
        ]);
        assert_eq!(ended.code, Some(7), "{}", ended.err);
        assert_eq!(ended.out, "printed\tx\t--y\n");
        assert!(
            ended.err.starts_with("info {") && ended.err.ends_with(" logged\n"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn what_main_ends_with_is_the_exit_code() {
    let cases = [
        ("return", 0),
        ("return true", 0),
        ("return false", 1),
        ("return 'text'", 0),
        ("error('no')", 1),
    ];
    for (number, (body, code)) in cases.iter().enumerate() {
        let folder = Folder::new(
            &format!("end{number}"),
            &[("main.lua", &format!("function main() {body} end"))],
        );
        let ended = windlass(&["run", &folder.path("main.lua")]);
        assert_eq!(ended.code, Some(*code), "{body}: {}", ended.err);
    }
}

#[test]
fn an_error_is_shown_once_with_its_traceback() {
    let folder = Folder::new(
        "error",
        &[(
            "main.lua",
            "local function f()\n  error('boom')\nend\nfunction main() f() end",
        )],
    );
    let ended = windlass(&["run", &folder.path("main.lua")]).refused();
    assert!(
        ended
            .err
            .starts_with("error: main.lua:2: boom\nstack traceback:"),
        "{}",
        ended.err
    );
    assert_eq!(ended.err.matches("boom").count(), 1, "{}", ended.err);
    let folder = Folder::new("syntax", &[("main.lua", "function main(\n")]);
    let ended = windlass(&["run", &folder.path("main.lua")]).refused();
    assert!(ended.err.contains("main.lua:"), "{}", ended.err);
}

#[test]
fn the_sandbox_is_what_was_allowed() {
    let main = "function main(dir)
        local ok, e = pcall(os.getenv, 'PATH')
        print(ok)
        print(pcall(fs.write, 'out.txt', 'written') and fs.read('out.txt'))
    end";
    let folder = Folder::new("sandbox", &[("main.lua", main)]);
    let closed = windlass(&["run", &folder.path("main.lua")]);
    assert_eq!(closed.out, "false\nfalse\n", "{}", closed.err);
    let open = windlass(&[
        "run",
        "--allow-env",
        "--allow-fs",
        &folder.path(""),
        &folder.path("main.lua"),
    ])
    .fine();
    assert_eq!(open.out, "true\nwritten\n");
    let nowhere = windlass(&[
        "run",
        "--allow-fs",
        "/no/such/folder",
        &folder.path("main.lua"),
    ])
    .refused();
    assert!(nowhere.err.contains("/no/such/folder"), "{}", nowhere.err);
}

#[test]
fn a_recording_is_replayed() {
    let main = "function main() local n = math.random(1 << 40) sleep(0.001) print(n, now(), process.self()) return 0 end";
    let folder = Folder::new("record", &[("main.lua", main)]);
    let (script, file) = (folder.path("main.lua"), folder.path("recording"));
    let recorded = windlass(&["run", "--record", &file, &script]).fine();
    let replayed = windlass(&["run", "--replay", &file, &script]).fine();
    assert_eq!(recorded.out, replayed.out);
    assert!(
        replayed
            .err
            .contains("everything happened as it was recorded"),
        "{}",
        replayed.err
    );
    fs::write(folder.0.join("main.lua"), "function main() return 0 end").expect("a file");
    let other = windlass(&["run", "--replay", &file, &script]).refused();
    assert!(
        other.err.contains("the replay differs at line"),
        "{}",
        other.err
    );
    fs::write(&file, "nonsense").expect("a file");
    let foreign = windlass(&["run", "--replay", &file, &script]).refused();
    assert!(foreign.err.contains("no recording"), "{}", foreign.err);
    let pool = windlass(&["run", "--placement", "pool", "--record", &file, &script]).refused();
    assert!(pool.err.contains("Placement::Reactor"), "{}", pool.err);
}

#[test]
fn a_graph_is_run_by_the_same_verb() {
    let ended = windlass(&["run", &example("hello"), "--steps", "2"]).fine();
    assert_eq!(ended.line("ticks"), "6");
    let refused = windlass(&["run", &example("hello"), "--watch"]).refused();
    assert!(
        refused.err.contains("--watch is for scripts"),
        "{}",
        refused.err
    );
    let refused = windlass(&["run", "--steps", "1", "no.lua"]).refused();
    assert!(
        refused.err.contains("--steps is for graphs"),
        "{}",
        refused.err
    );
    let unknown = windlass(&["run", "README.md"]).refused();
    assert!(unknown.err.contains("neither a script"), "{}", unknown.err);
    let missing = windlass(&["run", "no/such.lua"]).refused();
    assert!(missing.err.contains("no/such.lua"), "{}", missing.err);
}

#[test]
fn the_examples_in_lua_run_from_the_root() {
    for script in ["examples/lua/chat/main.lua", "examples/lua/pool/main.lua"] {
        let ended = windlass(&["run", script]).fine();
        assert!(!ended.out.is_empty(), "{script}: {}", ended.err);
    }
    let graph = "examples/lua/graph/smoother.yaml";
    let ended = windlass(&["run", graph, "--steps", "5"]).fine();
    assert_eq!(ended.line("stop_reason"), "tick_bound");
    windlass(&["graph", "validate", graph]).fine();
}

/// Starts a script, and waits until it has printed this.
pub(crate) fn started(
    arguments: &[&str],
    first: &str,
) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it prints");
    assert_eq!(line.trim_end(), first);
    (child, out)
}

pub(crate) fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("there is kill").success());
}

#[test]
fn ctrl_c_stops_in_order() {
    let main = "function main()
        print('ready')
        local ok, e = pcall(sleep, 1000)
        print(e.kind)
        sleep(0.01)
        print('cleaned up')
        error(e)
    end";
    let folder = Folder::new("interrupt", &[("main.lua", main)]);
    let (mut child, mut out) = started(&["run", &folder.path("main.lua")], "ready");
    interrupt(&child);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it prints");
    assert_eq!(rest, "cancelled\ncleaned up\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn a_script_that_does_not_stop_is_ended() {
    let spin = "function main() print('ready') while true do pcall(function() while true do end end) end end";
    let folder = Folder::new("spin", &[("main.lua", spin)]);
    for (stop_ms, placement) in [
        ("100", "pool"),
        ("100", "reactor"),
        // A tenth of this is too short for a kill, so the command has to wait longer for it.
        ("1", "pool"),
        ("1", "reactor"),
    ] {
        let arguments = [
            "run",
            "--stop-ms",
            stop_ms,
            "--placement",
            placement,
            &folder.path("main.lua"),
        ];
        let (child, _out) = started(&arguments, "ready");
        interrupt(&child);
        let ended = Ended::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, Some(124), "{}", ended.err);
        let expected = format!("did not stop within {stop_ms} ms, and was killed");
        assert!(ended.err.contains(&expected), "{}", ended.err);
    }
}

#[test]
fn a_changed_file_is_gone_on_with() {
    let version = |name: &str| {
        format!(
            "local n = 0
            function main(state)
                n = type(state) == 'table' and state.n or 0
                process.on_upgrade(function() return {{n = n + 1}} end)
                print('{name} ' .. n)
                if '{name}' == 'third' then return 0 end
                receive('never')
            end"
        )
    };
    let folder = Folder::new("watch", &[("main.lua", &version("first"))]);
    let (mut child, mut out) = started(&["run", "--watch", &folder.path("main.lua")], "first 0");
    for (name, expected) in [("second", "second 1\n"), ("third", "third 2\n")] {
        fs::write(folder.0.join("main.lua"), version(name)).expect("a file");
        let mut line = String::new();
        out.read_line(&mut line).expect("it prints");
        assert_eq!(line, expected);
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
