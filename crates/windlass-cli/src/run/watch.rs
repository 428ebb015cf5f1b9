//! Files that change while their script runs.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::pipe::pipe;
use windlass::lua::Interpreter;

/// Tells an interpreter of changed files, until it is dropped.
pub(super) struct Watch {
    /// Closing it wakes the thread that watches.
    _stop: OwnedFd,
}

impl Watch {
    /// Watches the folder of a script.
    pub(super) fn start(script: &Path, lua: &Interpreter) -> io::Result<Watch> {
        let script = script.canonicalize()?;
        let folder = script.parent().unwrap_or(Path::new("/")).to_owned();
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let changes = inotify::init(flags)?;
        // Editors write to the file, or put another one in its place.
        let wanted = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&changes, &folder, wanted)?;
        let (stopped, stop) = pipe()?;
        let lua = lua.clone();
        drop(windlass::spawn_blocking(move || {
            watch(&changes, &stopped, &folder, &script, &lua);
        }));
        Ok(Watch { _stop: stop })
    }
}

fn watch(changes: &OwnedFd, stopped: &OwnedFd, folder: &Path, script: &Path, lua: &Interpreter) {
    loop {
        let mut either = [
            PollFd::new(changes, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        if poll(&mut either, None).is_err() || !either[1].revents().is_empty() {
            return;
        }
        let mut files = changed(changes, folder);
        files.dedup();
        for file in files {
            // A file that no process runs is a module of the script.
            if lua.changed(&file) == 0 {
                lua.changed(script);
            }
        }
    }
}

/// The Lua files that have changed.
fn changed(changes: &OwnedFd, folder: &Path) -> Vec<PathBuf> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(changes, &mut buffer);
    let mut files = Vec::new();
    while let Ok(event) = reader.next() {
        let name = event.file_name().and_then(|name| name.to_str().ok());
        files.extend(
            name.filter(|name| name.ends_with(".lua"))
                .map(|name| folder.join(name)),
        );
        if reader.is_buffer_empty() {
            break;
        }
    }
    files
}
