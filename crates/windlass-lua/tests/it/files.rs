//! Lua processes that are files: others beside them, modules, new code, the world outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_actor::{ExitReason, Message};
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_lua::{Interpreter, Sandbox};
use windlass_value::Payload;
use windlass_vm::{Exception, Placement, Vm};

use crate::support::{BOTH, real};

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Folder {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-lua-{}-{number}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a folder");
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn vm(placement: Placement) -> Vm {
    Vm::builder()
        .placement(placement)
        .workers(2)
        .build()
        .expect("a VM")
}

/// Runs `main.lua` of these files on both placements, and gives what it ended with.
fn on_both(files: &[(&str, &str)], check: impl Fn(ExitReason, Payload)) {
    for placement in BOTH {
        let folder = Folder::new(files);
        real(|| async {
            let lua = Interpreter::builder(&vm(placement))
                .build()
                .expect("an interpreter");
            let task = lua
                .spawn_file(folder.path("main.lua"), [])
                .expect("it starts");
            let exit = task.join().await;
            check(exit.reason, exit.value);
        });
    }
}

fn ends_with(files: &[(&str, &str)], expected: impl Into<Payload>) {
    let expected = expected.into();
    on_both(files, |reason, value| {
        assert!(reason.is_normal(), "{reason}");
        assert_eq!(value, expected);
    });
}

#[test]
fn a_process_starts_and_awaits_another() {
    let main = "
        function main()
            local child = process.spawn('child.lua', 20, {x = 22})
            assert(tostring(child):find('process {'))
            assert(not pcall(process.spawn, 'nowhere.lua'))
            assert(not pcall(process.spawn, '/etc/passwd'))
            return await(child)
        end";
    let child = "function main(a, b) sleep(0.001) return a + b.x end";
    ends_with(&[("main.lua", main), ("child.lua", child)], 42);
}

#[test]
fn modules_come_from_the_scripts_own_folder() {
    let main = "
        local a = require('lib.a')
        assert(require('lib.a') == a and loads == 1)
        local ok, e = pcall(require, '../etc')
        assert(not ok)
        local ok, e = pcall(require, 'missing')
        assert(not ok and tostring(e):find('missing.lua'), e)
        local ok, e = pcall(require, 'long')
        assert(not ok and e.kind == 'require', e)
        assert(tostring(e):find('long.lua: the script has more than 10000', 1, true), e)
        local ok, e = pcall(require, 'circle')
        assert(not ok and tostring(e):find('requires itself'), e)
        function main() return a.name .. require('b') end";
    let files = [
        ("main.lua", main),
        (
            "lib/a.lua",
            "loads = (loads or 0) + 1 sleep(0.001) return {name = 'a'}",
        ),
        ("b/init.lua", "return 'b'"),
        ("long.lua", &format!("return a{}", " or a".repeat(11_000))),
        ("circle.lua", "return require('circle')"),
    ];
    ends_with(&files, "ab");
}

#[test]
fn monitors_tell_of_ends_and_links_share_them() {
    let main = "
        function main()
            local dies = process.spawn {script = 'dies.lua', args = {'on purpose'}, monitor = true}
            local m = receive('exit', 10)
            assert(m.payload.pid == dies.pid and m.payload.kind == 'error', m.payload.kind)
            assert(m.payload.reason:find('on purpose') and m.payload.reason:find('stack traceback'), m.payload.reason)
            process.trap_links()
            local linked = process.spawn {script = 'dies.lua', args = {'linked'}, link = true}
            local m = receive('exit', 10)
            assert(m.payload.pid == linked.pid and m.payload.monitor == nil)
            local waits = process.spawn {script = 'waits.lua', monitor = true, name = 'waiter'}
            assert(process.whereis('waiter') == waits.pid and process.alive('waiter'))
            waits:cancel('no longer needed')
            local m = receive('exit', 10)
            assert(m.payload.kind == 'cancelled', m.payload.kind)
            local killed = process.spawn {script = 'waits.lua', monitor = true}
            killed:kill()
            return receive('exit', 10).payload.kind
        end";
    let files = [
        ("main.lua", main),
        ("dies.lua", "function main(why) error(why) end"),
        ("waits.lua", "function main() receive('never') end"),
    ];
    ends_with(&files, "killed");
}

#[test]
fn messages_come_before_the_end_of_their_sender() {
    let main = "
        function main()
            local t = process.spawn {script = 'sends.lua', args = {process.self()}, monitor = true}
            sleep(0.02)
            local got = {}
            for i = 1, 4 do got[i] = receive(nil, 10).topic end
            return table.concat(got, ' ')
        end";
    let sends = "function main(to) for i = 1, 3 do send(to, 'm' .. i) end end";
    ends_with(&[("main.lua", main), ("sends.lua", sends)], "m1 m2 m3 exit");
}

#[test]
fn a_link_ends_who_does_not_trap_it() {
    let main = "
        function main()
            process.spawn {script = 'dies.lua', link = true}
            sleep(1000)
        end";
    let files = [
        ("main.lua", main),
        ("dies.lua", "function main() error('both') end"),
    ];
    on_both(&files, |reason, _| {
        assert!(reason.to_string().contains("both"), "{reason}")
    });
}

#[test]
fn a_supervised_script_is_started_again() {
    let main = "
        function main()
            process.register('main')
            local s = supervisor.start {
                strategy = 'one_for_one', backoff = 0.001, max_restarts = 5, within = 60,
                children = {{id = 'worker', script = 'worker.lua', args = {'hello'}, name = 'worker'}},
            }
            local pids = {}
            for life = 1, 3 do
                local m = receive('born', 10)
                pids[#pids + 1] = tostring(m.from)
                assert(m.payload == 'hello')
                if life < 3 then send(m.from, 'die') end
            end
            assert(pids[1] ~= pids[2] and pids[2] ~= pids[3])
            local tree = supervisor.tree(s)
            assert(tree:find('worker') and tree:find('one_for_one'), tree)
            supervisor.stop(s, 'done')
            local monitor = process.monitor(s)
            receive('exit', 10)
            assert(not process.alive(s))
            assert(not pcall(supervisor.start, {children = {{script = 'nowhere.lua'}}}))
            return 'supervised'
        end";
    let worker = "
        function main(greeting)
            send('main', 'born', greeting)
            receive('die')
            error('told to')
        end";
    ends_with(&[("main.lua", main), ("worker.lua", worker)], "supervised");
}

const COUNTER: &str = "
    local count = 0
    function main(state)
        count = state and state.count or 0
        process.on_upgrade(function() return {count = count} end)
        while true do
            local m = receive()
            if m.topic == 'count' then count = count + 1 end
            if m.topic == 'tell' then send(m.from, 'told', 'VERSION ' .. count) end
            if m.topic == 'upgrade' then
                local ok, e = pcall(process.upgrade, {count = count})
                send(m.from, 'refused', tostring(e))
            end
        end
    end
    upgraded = main";

#[test]
fn a_process_goes_on_with_new_code_and_keeps_its_state() {
    for placement in BOTH {
        let asks = "
            function main(counter)
                send(counter, 'count') send(counter, 'count') send(counter, 'tell')
                local before = receive('told', 10).payload
                send(counter, 'upgrade')
                send(counter, 'count') send(counter, 'tell')
                return before .. ' ' .. receive('told', 10).payload
            end";
        let folder = Folder::new(&[
            ("counter.lua", &COUNTER.replace("VERSION", "old")),
            ("asks.lua", asks),
        ]);
        real(|| async {
            let lua = Interpreter::builder(&vm(placement))
                .watched()
                .build()
                .expect("an interpreter");
            let counter = lua
                .spawn_file(folder.path("counter.lua"), [])
                .expect("it starts");
            let ask = || async {
                let asks = lua.spawn_file(folder.path("asks.lua"), [counter.pid().into()]);
                asks.expect("it starts").join().await.value
            };
            // The same code again: nothing but the state is kept.
            assert_eq!(ask().await, "old 2 old 3".into());
            folder.write("counter.lua", &COUNTER.replace("VERSION", "new"));
            assert_eq!(ask().await, "old 5 new 6".into());
            // Code that makes no sense is refused, and the process goes on.
            folder.write("counter.lua", "function main(");
            let broken =
                "function main(c) send(c, 'upgrade') return receive('refused', 10).payload end";
            folder.write("broken.lua", broken);
            let broken = lua
                .spawn_file(folder.path("broken.lua"), [counter.pid().into()])
                .expect("it starts");
            let said = broken.join().await.value;
            assert!(
                said.as_str().unwrap_or_default().contains("counter.lua:1:"),
                "{said:?}"
            );
            // Another thread says that the file has changed.
            folder.write("counter.lua", &COUNTER.replace("VERSION", "watched"));
            assert_eq!(lua.changed(folder.path("counter.lua")), 1);
            let host = lua.vm().host().clone();
            let seen = host
                .spawn(
                    move |mut ctx: windlass_actor::Context<Message>| async move {
                        // Messages wait while the new code comes, so one question is enough.
                        let (to, from) = (counter.pid(), ctx.pid());
                        ctx.host()
                            .send(to, Message::new("tell", ()).from(from))
                            .expect("it is there");
                        let told = ctx.recv().await.expect("an answer").payload;
                        counter.kill();
                        told
                    },
                )
                .expect("a process");
            let told = seen.join().await.value;
            let told = told.as_str().unwrap_or_default().to_owned();
            assert!(told == "watched 6" || told == "new 6", "{told}");
        });
    }
}

#[test]
fn files_are_read_and_written_where_the_sandbox_allows() {
    for placement in BOTH {
        let main = "
            function main()
                fs.mkdir('data/deep')
                fs.write('data/deep/a.txt', 'one')
                fs.append('data/deep/a.txt', ' two')
                assert(fs.read('data/deep/a.txt') == 'one two')
                local names = fs.list('data/deep')
                assert(#names == 1 and names[1] == 'a.txt')
                assert(fs.stat('data/deep/a.txt').size == 7 and fs.stat('data').is_dir and fs.stat('data/none') == nil)
                fs.remove('data/deep/a.txt')
                for _, bad in ipairs {'main.lua', '../x', '/etc/passwd', 'data/../main.lua'} do
                    local ok, e = pcall(fs.read, bad)
                    assert(not ok and tostring(e):find('sandbox'), bad)
                end
                local ok, e = pcall(fs.read, 'data/none')
                return ok == false and tostring(e):find('No such file') ~= nil
            end";
        let folder = Folder::new(&[("main.lua", main), ("data/x", "")]);
        real(|| async {
            let sandbox = Sandbox::new().allow_fs(folder.path("data")).allow_env();
            let lua = Interpreter::builder(&vm(placement))
                .sandbox(sandbox)
                .build()
                .expect("an interpreter");
            let exit = lua
                .spawn_file(folder.path("main.lua"), [])
                .expect("it starts")
                .join()
                .await;
            assert_eq!(exit.value, true.into(), "{}", exit.reason);
        });
    }
}

#[test]
fn requests_go_to_hosts_that_the_sandbox_allows() {
    use windlass_http::{Response, body, serve, service_fn};
    for placement in BOTH {
        real(|| async move {
            let listener = windlass_io::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let service = service_fn(|request: windlass_http::Request<_>| async move {
                let text = format!("{} {}", request.method(), request.uri().path());
                let response = Response::builder().status(201).header("x-seen", "yes");
                Ok::<_, std::convert::Infallible>(
                    response.body(body::full(text)).expect("a response"),
                )
            });
            let server = windlass_runtime::spawn(async move { serve(listener, service).await });
            let sandbox = Sandbox::new().allow_net("127.0.0.1");
            let lua = Interpreter::builder(&vm(placement))
                .sandbox(sandbox)
                .build()
                .expect("an interpreter");
            let text = format!(
                "function main()
                    local r = http.get('http://127.0.0.1:{port}/path')
                    assert(r.status == 201 and r.headers['x-seen'] == 'yes' and r.body == 'GET /path', r.body)
                    assert(not pcall(http.get, 'http://127.0.0.2:{port}/'))
                    assert(not pcall(http.get, 'http://127.0.0.1:1/'))
                    assert(not pcall(http.get, 'no url at all'))
                    return http.post('http://127.0.0.1:{port}/there', 'x').body
                end"
            );
            let exit = lua
                .spawn_text("http", text, [])
                .expect("it starts")
                .join()
                .await;
            assert_eq!(exit.value, "POST /there".into(), "{}", exit.reason);
            server.abort();
        });
    }
}

#[test]
fn blocking_functions_of_the_host_keep_nobody_waiting() {
    for placement in BOTH {
        real(|| async move {
            let lua = Interpreter::builder(&vm(placement))
                .blocking("slow", |args| {
                    #[allow(
                        clippy::disallowed_methods,
                        reason = "it stands for a library that blocks"
                    )]
                    std::thread::sleep(Duration::from_millis(20));
                    Ok(args.into_iter().next().unwrap_or_default())
                })
                .blocking("fails", |_| Err(Exception::Failed("on purpose".into())))
                .blocking("panics", |_| panic!("as a test"))
                .setup(|lua| {
                    lua.globals()
                        .set("twice", lua.create_function(|_, n: i64| Ok(2 * n))?)
                })
                .build()
                .expect("an interpreter");
            let text = "
                function main()
                    local tasks, ticks = {}, 0
                    for i = 1, 20 do tasks[i] = spawn(function() return blocking('slow', i) end) end
                    local sum = 0
                    for i = 1, 20 do sum = sum + await(tasks[i]) end
                    local ok, e = pcall(blocking, 'fails')
                    assert(not ok and tostring(e):find('on purpose'))
                    local ok, e = pcall(blocking, 'panics')
                    assert(not ok and e.kind == 'panic', e)
                    assert(not pcall(blocking, 'unknown'))
                    return twice(sum)
                end";
            let exit = lua
                .spawn_text("blocks", text, [])
                .expect("it starts")
                .join()
                .await;
            assert_eq!(exit.value, 420.into(), "{}", exit.reason);
        });
    }
}

#[test]
fn a_blocking_call_that_never_returns_does_not_keep_the_runtime() {
    for placement in BOTH {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let held = windlass_core::sync::Mutex::new(held);
        let runtime = windlass_runtime::Runtime::builder()
            .workers(2)
            .build()
            .expect("a runtime");
        let task = runtime.block_on(async move {
            let lua = Interpreter::builder(&vm(placement))
                .blocking("forever", move |_| {
                    // Until the test is over.
                    let _ = held.lock().recv();
                    Ok(Payload::Nil)
                })
                .build()
                .expect("an interpreter");
            let text = "function main() print = log.debug blocking('forever') end";
            let task = lua.spawn_text("waits", text, []).expect("it starts");
            while task.waits_for().len() < 2 {
                windlass_runtime::task::yield_now().await;
            }
            task
        });
        let began = windlass_core::sync::clock::now();
        let report = runtime.shutdown(Duration::from_millis(300));
        let took = Duration::from_nanos(windlass_core::sync::clock::now() - began);
        assert!(task.is_finished(), "the guest was told");
        assert!(took < Duration::from_secs(10), "{took:?}");
        drop(report);
        drop(hold);
    }
}
