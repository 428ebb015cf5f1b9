-- Tasks that a script starts itself, errors, and whatever else a process does not need that only
-- waits for messages. A part of the prelude: no other task runs while one is inside code of this
-- file.
local native, co, ops, standard, tasks, TaskMeta, make, checked, env, libraries, show = ...

local type, getmetatable, setmetatable, rawget, pairs, select, tostring, pcall, error, collectgarbage =
  type, getmetatable, setmetatable, rawget, pairs, select, tostring, pcall, error, collectgarbage
local pack, unpack, concat, sub = standard.pack, standard.unpack, standard.concat, standard.sub
local suspend, current, location, traceback = co.suspend, co.current, co.location, co.traceback

---- errors ----

-- Errors have a kind and a message, and print as the message.
local Error = {__name = "error", __metatable = "error", __tostring = function(e) return e.message end}

local function fail(level, kind, message)
  -- The host had no memory for what it wanted to say.
  if kind == nil then kind, message = "payload", "not enough memory for what has arrived" end
  error(setmetatable({kind = kind, message = location(level + 1) .. message}, Error), 0)
end

-- The level of who calls this; one less where the call is the last thing that its caller does.
local function wait(level, ...)
  return checked(level, suspend(...))
end

local function number(level, what, value)
  if type(value) ~= "number" or value ~= value or value < 0 then
    fail(level + 1, "argument", what .. " must be a number that is not negative, not " .. tostring(value))
  end
  return value
end

-- Functions of the host that answer at once.
local function direct(name)
  -- Looked for when it is called: most functions of the host are made with the first of them.
  return function(...) return checked(1, native[name](...)) end
end

-- Functions of the host that wait.
local function waiting(op)
  return function(...) return wait(1, op, ...) end
end

---- tasks ----

local failed = setmetatable({}, {__mode = "k"})   -- tasks whose error no task has got

local function report(task)
  if failed[task] then
    failed[task] = nil
    local value = task.err.value
    if type(value) == "table" and not getmetatable(value) then
      local ok, text = native.json_encode(value)
      value = ok and text or value
    end
    native.uncaught(task.id, tostring(value) .. "\n" .. task.err.traceback)
  end
end

-- A task was served and cancelled at the same time: what it was served counts, and its next wait
-- ends with the cancel.
local function tell_again(ok, kind, message)
  if not ok and kind == "cancelled" then native.cancel_task(current(), sub(message, #"cancelled: " + 1)) end
end

local function await(task)
  if getmetatable(task) ~= "task" then
    return wait(1, ops.await, task)
  end
  if not task.done then
    local id = current()
    if task.id == id then fail(2, "argument", "a task cannot wait for itself") end
    local group = {task = id}
    local waiters = task.waiters
    if not waiters then
      waiters = {}
      task.waiters = waiters
    end
    waiters[#waiters + 1] = group
    local ok, kind, message = suspend(ops.park)
    if not task.done then
      group.gone = true
      fail(2, kind or "cancelled", message or "cancelled")
    end
    tell_again(ok, kind, message)
  end
  failed[task] = nil
  if task.ok then return unpack(task.values, 1, task.values.n) end
  error(task.err.value, 0)
end

local Task = {}
TaskMeta.__index = Task

function Task:await() return await(self) end

function Task:cancel(reason)
  if not self.done then native.cancel_task(self.id, tostring(reason or "cancelled")) end
end

function Task:status()
  if not self.done then return "running" end
  return self.ok and "done" or "failed"
end

function TaskMeta.__tostring(task) return "task " .. task.id .. " (" .. task:status() .. ")" end

---- channels, mutexes and semaphores ----

local sync

local function load_sync()
  if not sync then
    local load = native.part("sync")
    sync = load(native, co, ops, standard, tasks, fail, number, tell_again, show)
  end
  return sync
end

local function of_sync(name)
  return function(...) return load_sync()[name](...) end
end

---- printing ----

local function joined(...)
  local parts = pack(...)
  for place = 1, parts.n do parts[place] = show(parts[place]) end
  return concat(parts, "\t", 1, parts.n)
end

---- libraries ----

local base, on_upgrade

local function fill()
  if base then return end
  local load = native.part("libraries")
  local filled = load {
    native = native, ops = ops, wait = wait, direct = direct, waiting = waiting, joined = joined, fail = fail,
    checked = checked, concat = concat, env = env, upgrade = function(fn) on_upgrade = fn end,
  }
  for name, library in pairs(libraries) do
    for key, value in pairs(filled[name]) do
      -- A script may have put something of its own there.
      if rawget(library, key) == nil then library[key] = value end
    end
    -- Only now: where the memory was not enough, it is tried again.
    setmetatable(library, nil)
  end
  base = filled.base
end

---- what the core of the prelude, scripts and the host call ----

return {
  fail = fail, number = number, failed = failed, report = report, release = of_sync("release"), fill = fill,
  new_channel = of_sync("new_channel"), select = of_sync("select"), new_mutex = of_sync("new_mutex"),
  new_semaphore = of_sync("new_semaphore"),
  spawn = function(fn, ...)
    if type(fn) ~= "function" then fail(2, "argument", "spawn takes a function, not a " .. type(fn)) end
    return make(fn, ...)
  end,
  await = await, yield = waiting(ops.yield), blocking = waiting(ops.blocking), buffer = direct("buffer"),
  print = function(...) native.print(joined(...)) end,
  load = function(...)
    fill()
    return base.load(...)
  end,
  require = function(...)
    fill()
    return base.require(...)
  end,
  collectgarbage = function(what)
    what = what or "collect"
    if what ~= "collect" and what ~= "count" and what ~= "step" then
      fail(2, "sandbox", "collectgarbage does 'collect', 'count' and 'step' here")
    end
    return collectgarbage(what)
  end,
  running = function() return standard.running(), co.is_task() end,
  time = direct("time"), date = direct("date"), getenv = direct("getenv"),
  clock = function() return native.clock() end, difftime = function(a, b) return a - b end,
  traceback = function(message, level)
    if message ~= nil and type(message) ~= "string" and type(message) ~= "number" then return message end
    local calls = native.without_prelude(traceback((level or 1) + 1))
    return message and (message .. "\n" .. calls) or calls
  end,
  randomseed = function(...)
    -- Without a seed it is chance, which a replay has to know.
    if select("#", ...) == 0 then return standard.randomseed(native.random(), native.random()) end
    return standard.randomseed(...)
  end,
  upgrade = function()
    if not on_upgrade then return false end
    make(function()
      local ok, e = pcall(function() wait(1, ops.upgrade, on_upgrade()) end)
      if not ok then native.log("error", "the new code is not used: " .. show(e)) end
    end)
    return true
  end,
  report_all = function() for task in pairs(failed) do report(task) end end,
}
