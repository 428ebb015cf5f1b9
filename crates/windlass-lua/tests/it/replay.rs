//! V8 for Lua: what was recorded happens again, byte for byte.

use std::fs;

use std::sync::Arc;
use windlass_core::sync::Mutex;
use windlass_lua::{Interpreter, Printed};
use windlass_record::RecordingError;
use windlass_vm::{Placement, Vm};

use crate::files::Folder;
use crate::support::real;

const MAIN: &str = "
    function main()
        local seen = {}
        local ch = channel.new(1)
        for i = 1, 3 do
            spawn(function()
                -- Long enough to be preempted, by count.
                local n = 0
                for k = 1, 200000 + i * 1000 do n = n + k % 7 end
                ch:send(i .. ':' .. n)
            end)
        end
        for i = 1, 3 do seen[#seen + 1] = ch:receive() end
        local child = process.spawn('child.lua', math.random(1000000))
        process.monitor(child)
        seen[#seen + 1] = tostring(receive('hello', 10).payload)
        seen[#seen + 1] = receive('exit', 10).payload.kind
        sleep(0.002)
        seen[#seen + 1] = tostring(now() > 0) .. os.date('%Y')
        for key in pairs({b = 1, a = 2, [3] = 3, c = {}}) do seen[#seen + 1] = tostring(key) end
        seen[#seen + 1] = tostring({}) .. tostring(print)
        seen[#seen + 1] = tostring(process.self())
        print({}, print, ch, mutex.new(), coroutine.create(print))
        math.randomseed()
        seen[#seen + 1] = math.random(1000000)
        seen[#seen + 1] = tostring(blocking('outside'))
        print(table.concat(seen, ' '))
        return table.concat(seen, ' ')
    end";

const CHILD: &str = "
    function main(n)
        for _, pid in ipairs(process.members('nobody')) do end
        send('parent', 'lost')
        process.register('child')
        local t = spawn(function() yield() return n * 2 end)
        local parent = process.members('parents')[1]
        send(parent, 'hello', {await(t), math.random()})
    end";

/// Runs it once; gives what it ended with and what it printed.
async fn once(folder: &Folder, vm: Vm) -> (String, Vec<String>) {
    let printed = Arc::new(Mutex::new(Vec::new()));
    let to = printed.clone();
    let lua = Interpreter::builder(&vm)
        .output(move |said: Printed<'_>| to.lock().push(said.text.to_owned()))
        .blocking("outside", |_| {
            Ok(i64::from(std::process::id() as i32).into())
        })
        .build()
        .expect("an interpreter");
    let task = lua
        .spawn_file(folder.path("main.lua"), [])
        .expect("it starts");
    let exit = task.join().await;
    let said = printed.lock().clone();
    (format!("{:?} {}", exit.value, exit.reason), said)
}

#[test]
fn v8_a_replay_is_the_recording_byte_for_byte() {
    let main = MAIN.replace(
        "function main()",
        "function main()\n process.join('parents')",
    );
    let folder = Folder::new(&[("main.lua", &main), ("child.lua", CHILD)]);
    let (first, second) = (folder.path("first"), folder.path("second"));
    let mut results = Vec::new();
    for again in [false, true] {
        let (folder, first, second) = (&folder, &first, &second);
        let mut result = None;
        real(|| async {
            let builder = Vm::builder()
                .placement(Placement::Reactor)
                .workers(2)
                .slice_count(20_000);
            let vm = match again {
                false => builder.record(first).build(),
                true => builder.replay(first).record(second).build(),
            };
            let vm = vm.expect("a VM");
            result = Some(once(folder, vm.clone()).await);
            if again {
                vm.replayed().await.expect("it does the same");
            }
            vm.end_recording().await.expect("it is written");
        });
        results.push(result.expect("it ran"));
    }
    assert_eq!(results[0], results[1]);
    assert!(results[0].0.contains("normal"), "{}", results[0].0);
    let read = |path| fs::read_to_string(path).expect("a recording");
    let (first, second) = (read(&first), read(&second));
    assert_eq!(first, second);
    assert!(
        first.lines().count() > 50,
        "{} lines",
        first.lines().count()
    );
}

#[test]
fn other_code_is_found_out() {
    let folder = Folder::new(&[(
        "main.lua",
        "function main() sleep(0.001) return math.random() end",
    )]);
    let path = folder.path("recording");
    real(|| async {
        let vm = Vm::builder().record(&path).build().expect("a VM");
        once(&folder, vm.clone()).await;
        vm.end_recording().await.expect("it is written");
    });
    folder.write("main.lua", "function main() return 1 end");
    real(|| async {
        let vm = Vm::builder().replay(&path).build().expect("a VM");
        once(&folder, vm.clone()).await;
        let differs = vm.replayed().await.expect_err("it does something else");
        assert!(
            matches!(differs, RecordingError::Diverged { .. }),
            "{differs}"
        );
    });
}

/// What a guest asks for is compared, not only that it asks.
#[test]
fn another_sleep_is_found_out() {
    let folder = Folder::new(&[("main.lua", "function main() sleep(0.001) return 1 end")]);
    let path = folder.path("recording");
    real(|| async {
        let vm = Vm::builder().record(&path).build().expect("a VM");
        once(&folder, vm.clone()).await;
        vm.end_recording().await.expect("it is written");
    });
    folder.write("main.lua", "function main() sleep(0.002) return 1 end");
    real(|| async {
        let vm = Vm::builder().replay(&path).build().expect("a VM");
        once(&folder, vm.clone()).await;
        let differs = vm.replayed().await.expect_err("it sleeps longer");
        let said = differs.to_string();
        assert!(
            said.contains("sleep 1ms") && said.contains("sleep 2ms"),
            "{said}"
        );
    });
}

/// What a guest sends, prints and returns is compared, although none of it comes from outside.
#[test]
fn another_message_text_or_result_is_found_out() {
    let script = |topic: &str, sent: u32, printed: u32, returned: u32| {
        format!(
            "function main()
                send(process.self(), '{topic}', {{ amount = {sent} }})
                print('printed {printed}')
                return {returned}
            end"
        )
    };
    let changes = [
        (script("order", 2, 1, 1), "{\\\"amount\\\":2}"),
        (script("odrer", 1, 1, 1), "sent odrer"),
        (script("order", 1, 2, 1), "printed printed 2"),
        (script("order", 1, 1, 2), "done 2"),
    ];
    for (changed, expected) in changes {
        let folder = Folder::new(&[("main.lua", &script("order", 1, 1, 1))]);
        let path = folder.path("recording");
        real(|| async {
            let vm = Vm::builder().record(&path).build().expect("a VM");
            once(&folder, vm.clone()).await;
            vm.end_recording().await.expect("it is written");
        });
        folder.write("main.lua", &changed);
        real(|| async {
            let vm = Vm::builder().replay(&path).build().expect("a VM");
            once(&folder, vm.clone()).await;
            let differs = vm.replayed().await.expect_err("it does something else");
            let said = differs.to_string();
            assert!(said.contains(expected), "{expected}: {said}");
        });
    }
}
