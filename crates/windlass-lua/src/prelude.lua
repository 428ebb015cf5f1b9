-- What every state has of the prelude: what scripts see, as far as it is made in Lua. No other task
-- runs while one is inside code of the prelude, so what it keeps is whole whenever another task of
-- the same state runs. It calls functions of scripts only where that holds.
--
-- Each state has a copy of this code for as long as it lives, so only that is here which a process
-- needs that waits for messages, and what is called often. The rest is in `prelude_tasks.lua`, from
-- the first call of it on.
local native, co, script, fixed, receive_op, sleep_op = ...

local error, type, setmetatable, getmetatable, rawget, pairs, select, xpcall, ipairs =
  error, type, setmetatable, getmetatable, rawget, pairs, select, xpcall, ipairs
local pack, unpack, suspend, traceback = table.pack, table.unpack, co.suspend, co.traceback

-- What the other parts need of the standard library, as it was before any script could change it.
local standard = {
  pack = pack, unpack = unpack, concat = table.concat, floor = math.floor, math_type = math.type, sub = string.sub,
  randomseed = math.randomseed, running = coroutine.running,
}

local tasks = {}                                  -- those that have not ended, by number
local libraries, env, show, make, checked

-- The metatables of what is made here stay here: with one in its hands a script could give it a
-- finalizer, and code in finalizers cannot be interrupted.
local TaskMeta = {__name = "task", __metatable = "task", __unsendable = true}

---- the rest of the prelude ----

local part

local function more()
  if not part then
    local load, ops = native.part("tasks")
    part = load(native, co, ops, standard, tasks, TaskMeta, make, checked, env, libraries, show)
  end
  return part
end

-- A function of that part. The call is the last thing that it does: levels are those of the
-- function itself.
local function later(name)
  return function(...) return more()[name](...) end
end

local fail = later("fail")

-- What a function of the host says: true and its values, or false, a kind and a message. The level
-- of who calls this; one less where the call is the last thing that its caller does.
function checked(level, ok, ...)
  if ok then return ... end
  return fail(level, ...)
end

---- tasks ----

function TaskMeta.__gc(task)
  if part and part.failed[task] then part.report(task) end
end

local function trace(value)
  if type(value) == "table" and rawget(value, "traceback") and rawget(value, "is_trace") then return value end
  return {is_trace = true, value = value, traceback = traceback(2)}
end

local function finish(task, ok, ...)
  tasks[task.id] = nil
  if task.held or task.permits then more().release(task) end
  task.done, task.ok = true, ok
  local waiters = task.waiters
  if ok then
    task.values = pack(...)
  else
    task.err = (...)
    -- The host hears of the main one.
    if not waiters and not task.main then more().failed[task] = true end
  end
  if waiters then
    task.waiters = nil
    for _, group in ipairs(waiters) do
      if not group.gone then
        group.fired = 1
        native.wake(group.task)
      end
    end
  end
  return ok, ...
end

function make(fn, ...)
  local task = setmetatable({done = false}, TaskMeta)
  local args = pack(...)
  local id, thread = native.launch(function()
    return finish(task, xpcall(fn, trace, unpack(args, 1, args.n)))
  end)
  if not id then fail(2, "limit", thread) end
  co.guard(thread)
  task.id = id
  tasks[id] = task
  return task
end

---- messages and time ----

local function send(to, topic, payload)
  local ok, why, message = native.send(to, topic, payload)
  if ok == nil then fail(2, why, message) end
  return ok, why
end

local function receive(topic, timeout)
  if type(topic) == "number" then topic, timeout = nil, topic end
  if timeout and not (type(timeout) == "number" and timeout >= 0) then more().number(2, "a timeout", timeout) end
  -- A message is three values; or a kind and what went wrong.
  local ok, first, second, from = suspend(receive_op, topic, timeout)
  if ok then return {topic = first, payload = second, from = from} end
  if first == "timeout" then return nil, "timeout" end
  fail(2, first, second)
end

local function sleep(seconds)
  if not (type(seconds) == "number" and seconds >= 0) then more().number(2, "a time", seconds) end
  local ok, kind, message = suspend(sleep_op, seconds)
  if not ok then fail(2, kind, message) end
end

---- libraries ----

-- Most processes use few of these: all are filled when the first is looked into.
libraries = {
  process = {self = native.self, script = script}, supervisor = {}, timer = {}, fs = {}, http = {}, json = {}, log = {},
}

local lazy = {}
function lazy.__index(library, name)
  more().fill()
  return library[name]
end

function lazy.__pairs(library)
  more().fill()
  return env.pairs(library)
end

for _, library in pairs(libraries) do setmetatable(library, lazy) end

---- the standard library, as far as it is ours ----

-- A kill is thrown from a hook, and Lua calls message handlers there, with hooks off: one that never
-- ends could not be ended. So the handler of a script is not called for a kill.
local function call_with_handler(fn, handler, ...)
  if type(handler) ~= "function" then return xpcall(fn, handler, ...) end
  local is_thrown = native.is_thrown
  return xpcall(fn, function(e)
    if is_thrown() then return e end
    return handler(e)
  end, ...)
end

env = {
  assert = assert, collectgarbage = later("collectgarbage"),
  error = error, getmetatable = function(value)
    -- All code of the state shares the metatable of strings.
    if type(value) == "string" then return nil end
    return getmetatable(value)
  end,
  ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, print = later("print"), rawequal = rawequal,
  rawget = rawget, rawlen = rawlen, rawset = rawset, select = select, setmetatable = function(value, meta)
    if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
      fail(2, "sandbox", "__gc is not available to scripts: use close, or a to-be-closed variable")
    end
    return setmetatable(value, meta)
  end,
  tonumber = tonumber, tostring = tostring, type = type, xpcall = call_with_handler, load = later("load"),
  require = later("require"), _VERSION = _VERSION,
  coroutine = {
    create = co.create, resume = co.resume, wrap = co.wrap, yield = co.yield, close = co.close,
    status = coroutine.status, isyieldable = coroutine.isyieldable, running = later("running"),
  },
  table = table, string = string, utf8 = utf8, math = math,
  os = {
    time = later("time"), clock = later("clock"), date = later("date"), difftime = later("difftime"),
    getenv = later("getenv"),
  },
  debug = {traceback = later("traceback")},
  spawn = later("spawn"), await = later("await"), sleep = sleep, yield = later("yield"),
  send = send, receive = receive, now = native.now, process = libraries.process, supervisor = libraries.supervisor,
  timer = libraries.timer, fs = libraries.fs, http = libraries.http, json = libraries.json, log = libraries.log,
  channel = {new = later("new_channel"), select = later("select")}, mutex = {new = later("new_mutex")},
  semaphore = {new = later("new_semaphore")}, buffer = later("buffer"), blocking = later("blocking"),
}
env._G = env
math.randomseed = later("randomseed")
for _, name in ipairs {"find", "match", "gmatch", "gsub"} do
  string[name] = function(...) return checked(1, native.patterns[name](...)) end
end

-- How values are shown; in a recording without their addresses.
show = tostring
if fixed then
  local load = native.part("fixed")
  show = load(env, fail, table.sort)
end

---- what the host calls ----

-- Starts `main` of the script that `chunk` is.
local function main(chunk, entry, ...)
  libraries.process.args = {...}
  local task = make(function(...)
    chunk(...)
    -- Its code is not needed any more.
    chunk = nil
    local main = rawget(env, entry) or rawget(env, "main")
    if main then return main(...) end
  end, ...)
  task.main = true
  return task.id
end

-- The failures that no task has got.
local function report()
  if part then part.report_all() end
end

return env, main, later("upgrade"), report
