-- What scripts see, as far as it is made in Lua. No other task runs while one is inside code of this file, so what it
-- keeps is whole whenever another task of the same state runs. It calls functions of scripts only where that holds.
local native, co, ops, config = ...

local error, type, setmetatable, getmetatable, rawget, pairs_, next, select, tostring, tonumber, pcall, xpcall, assert, ipairs =
  error, type, setmetatable, getmetatable, rawget, pairs, next, select, tostring, tonumber, pcall, xpcall, assert, ipairs
local pack, unpack, floor, concat, sort, take_out =
  table.pack, table.unpack, math.floor, table.concat, table.sort, table.remove
local math_type = math.type
local suspend, current, location, traceback = co.suspend, co.current, co.location, co.traceback
local wake = native.wake

-- Errors have a kind and a message, and print as the message.
-- The metatables of what is made here stay here: with one in its hands a script could give it a finalizer, and code in
-- finalizers cannot be interrupted.
local Error = {__name = "error", __metatable = "error", __tostring = function(e) return e.message end}

local function fail(level, kind, message)
  error(setmetatable({kind = kind, message = location(level + 1) .. message}, Error), 0)
end

-- What a function of the host says: true and its values, or false, a kind and a message.
local function checked(level, ok, ...)
  if ok then return ... end
  local kind, message = ...
  fail(level + 1, kind, message)
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

---- queues ----

-- How values are shown; in a recording without their addresses.
local show = tostring

local function whole(level, what, value)
  if math_type(value) ~= "integer" or value < 1 then
    fail(level + 1, "argument", what .. " must be a whole number from 1 on, not " .. show(value))
  end
  return value
end

local function queue() return {first = 1, last = 0} end

local function push(q, value)
  local last = q.last + 1
  q.last = last
  q[last] = value
end

local function pop(q)
  local first = q.first
  if first > q.last then return nil end
  local value = q[first]
  q[first] = nil
  q.first = first + 1
  return value
end

local function remove(q, value)
  for place = q.first, q.last do
    if q[place] == value then
      for after = place, q.last do q[after] = q[after + 1] end
      q.last = q.last - 1
      return
    end
  end
end

---- tasks ----

local tasks = {}                                  -- those that have not ended, by number
local failed = setmetatable({}, {__mode = "k"})   -- those whose error nobody has got

local Task = {}
local TaskMeta = {__name = "task", __metatable = "task", __index = Task, __unsendable = true}

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

TaskMeta.__gc = report

local function trace(value)
  if type(value) == "table" and rawget(value, "traceback") and rawget(value, "is_trace") then return value end
  return {is_trace = true, value = value, traceback = traceback(2)}
end

-- Somebody waits: `group` is shared by all the places where it stands in line, and says what came of it.
local function stand(task_id) return {task = task_id} end

local function served(group, which, value, ok)
  group.fired, group.value, group.ok = which, value, ok
  wake(group.task)
end

local pass_mutex, give_permits

local function finish(task, ok, ...)
  tasks[task.id] = nil
  for _, mutex in ipairs(pack(unpack(task.held))) do pass_mutex(mutex) end
  for _, entry in ipairs(task.permits) do give_permits(entry.semaphore, entry.permits) end
  task.done, task.ok = true, ok
  if ok then
    task.values = pack(...)
  else
    task.err = (...)
    -- The host hears of the main one.
    if #task.waiters == 0 and not task.main then failed[task] = true end
  end
  for _, group in ipairs(task.waiters) do
    if not group.gone then served(group, 1) end
  end
  task.waiters = nil
  return ok, ...
end

local function make(fn, ...)
  local task = setmetatable({waiters = {}, held = {}, permits = {}, done = false}, TaskMeta)
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

-- Parks the task until it is served; takes it out of line if something else comes first.
local function park(level, group, queues, timeout)
  local ok, kind, message = suspend(ops.park, timeout)
  if group.fired then return true end
  group.gone = true
  for _, q in ipairs(queues) do remove(q, group.entries and group.entries[q] or group) end
  if kind == "timeout" then return false end
  fail(level + 1, kind or "cancelled", message or "cancelled")
end

local function await(task)
  if getmetatable(task) ~= "task" then
    return wait(1, ops.await, task)
  end
  if not task.done then
    local id = current()
    if task.id == id then fail(2, "argument", "a task cannot wait for itself") end
    local group = stand(id)
    local waiters = task.waiters
    waiters[#waiters + 1] = group
    local ok, kind, message = suspend(ops.park)
    if not task.done then
      group.gone = true
      fail(2, kind or "cancelled", message or "cancelled")
    end
  end
  failed[task] = nil
  if task.ok then return unpack(task.values, 1, task.values.n) end
  error(task.err.value, 0)
end

function Task:await() return await(self) end

function Task:cancel(reason)
  if not self.done then native.cancel_task(self.id, tostring(reason or "cancelled")) end
end

function Task:status()
  if not self.done then return "running" end
  return self.ok and "done" or "failed"
end

TaskMeta.__tostring = function(task) return "task " .. task.id .. " (" .. task:status() .. ")" end

---- channels ----

local Channel = {}
local ChannelMeta = {__name = "channel", __metatable = "channel", __index = Channel, __unsendable = true}

local channel = {}

function channel.new(capacity)
  capacity = capacity or 0
  number(2, "the capacity of a channel", capacity)
  return setmetatable({capacity = floor(capacity), items = queue(), count = 0, closed = false,
    senders = queue(), receivers = queue()}, ChannelMeta)
end

local function check_channel(level, ch)
  if getmetatable(ch) ~= "channel" then fail(level + 1, "argument", "a channel is expected, not " .. type(ch)) end
end

-- Whoever stands first in line and has not been served elsewhere.
local function first(q)
  while true do
    local entry = pop(q)
    if entry == nil then return nil end
    if not entry.group.fired and not entry.group.gone then return entry end
  end
end

local function try_send(ch, value)
  local receiver = first(ch.receivers)
  if receiver then
    served(receiver.group, receiver.which, value, true)
    return true
  end
  if ch.count < ch.capacity then
    push(ch.items, value)
    ch.count = ch.count + 1
    return true
  end
  return false
end

-- True and a value; true and nil if it is closed; false if there is nothing.
local function try_receive(ch)
  if ch.count > 0 then
    local value = pop(ch.items)
    local sender = first(ch.senders)
    if sender then
      push(ch.items, sender.value)
      served(sender.group, sender.which, nil, true)
    else
      ch.count = ch.count - 1
    end
    return true, value
  end
  local sender = first(ch.senders)
  if sender then
    served(sender.group, sender.which, nil, true)
    return true, sender.value
  end
  if ch.closed then return true, nil end
  return false
end

local function check_value(level, value)
  if value == nil then fail(level + 1, "argument", "nil cannot be sent: it is what a closed channel gives") end
end

function Channel:send(value, timeout)
  check_channel(2, self)
  check_value(2, value)
  if self.closed then fail(2, "closed", "the channel is closed") end
  if try_send(self, value) then return true end
  local group = stand(current())
  local entry = {group = group, which = 1, value = value}
  group.entries = {[self.senders] = entry}
  push(self.senders, entry)
  if not park(2, group, {self.senders}, timeout) then return false, "timeout" end
  if not group.ok then fail(2, "closed", "the channel is closed") end
  return true
end

function Channel:receive(timeout)
  check_channel(2, self)
  local there, value = try_receive(self)
  if there then return value end
  local group = stand(current())
  local entry = {group = group, which = 1}
  group.entries = {[self.receivers] = entry}
  push(self.receivers, entry)
  if not park(2, group, {self.receivers}, timeout) then return nil, "timeout" end
  return group.value
end

function Channel:close()
  check_channel(2, self)
  self.closed = true
  while true do
    local receiver = first(self.receivers)
    if not receiver then break end
    served(receiver.group, receiver.which, nil, false)
  end
  while true do
    local sender = first(self.senders)
    if not sender then break end
    served(sender.group, sender.which, nil, false)
  end
end

ChannelMeta.__len = function(self) return self.count end

ChannelMeta.__call = function(self) return self:receive() end

-- The place of the first case that can go on, and what it gave. A channel is a receive, {channel, value} a send.
function channel.select(cases, timeout)
  if type(cases) ~= "table" then fail(2, "argument", "channel.select takes a table of cases") end
  if timeout then number(2, "a timeout", timeout) end
  for place, case in ipairs(cases) do
    if getmetatable(case) == "channel" then
      local there, value = try_receive(case)
      if there then return place, value end
    else
      local ch, value = case[1], case[2]
      check_channel(2, ch)
      check_value(2, value)
      if ch.closed then fail(2, "closed", "the channel of case " .. place .. " is closed") end
      if try_send(ch, value) then return place end
    end
  end
  if timeout == 0 then return nil, "timeout" end
  local group, queues = stand(current()), {}
  group.entries = {}
  for place, case in ipairs(cases) do
    local q, entry
    if getmetatable(case) == "channel" then
      q, entry = case.receivers, {group = group, which = place}
    else
      q, entry = case[1].senders, {group = group, which = place, value = case[2]}
    end
    group.entries[q] = entry
    queues[#queues + 1] = q
    push(q, entry)
  end
  if not park(2, group, queues, timeout) then return nil, "timeout" end
  for _, q in ipairs(queues) do remove(q, group.entries[q]) end
  local case = cases[group.fired]
  if getmetatable(case) ~= "channel" and not group.ok then
    fail(2, "closed", "the channel of case " .. group.fired .. " is closed")
  end
  return group.fired, group.value
end

---- mutexes and semaphores ----

local Mutex = {}
local MutexMeta = {__name = "mutex", __metatable = "mutex", __index = Mutex, __unsendable = true}

local mutex = {}

function mutex.new() return setmetatable({waiters = queue()}, MutexMeta) end

local function own(m, id)
  m.owner = id
  local task = tasks[id]
  if task then task.held[#task.held + 1] = m end
end

pass_mutex = function(m)
  local task = tasks[m.owner]
  if task then
    for place, held in ipairs(task.held) do
      if held == m then
        take_out(task.held, place)
        break
      end
    end
  end
  m.owner = nil
  while true do
    local group = pop(m.waiters)
    if not group then return end
    if not group.gone and not group.fired then
      own(m, group.task)
      return served(group, 1)
    end
  end
end

local function lock(level, m, timeout)
  local id = current()
  if m.owner == nil then
    own(m, id)
    return true
  end
  if m.owner == id then
    fail(level + 1, "relock", "the mutex is locked by this very task: unlock it first")
  end
  local group = stand(id)
  push(m.waiters, group)
  if not park(level + 1, group, {m.waiters}, timeout) then return false, "timeout" end
  return true
end

function Mutex:lock(timeout)
  local ok, why = lock(2, self, timeout)
  return ok, why
end

function Mutex:unlock()
  if self.owner ~= current() then
    fail(2, "not_owner", "the mutex is not locked by this task: only its owner unlocks it")
  end
  pass_mutex(self)
end

local function unlock_and(m, ok, ...)
  if m.owner == current() then pass_mutex(m) end
  if ok then return ... end
  error((...), 0)
end

function Mutex:with(fn, ...)
  lock(2, self)
  return unlock_and(self, pcall(fn, ...))
end

local Semaphore = {}
local SemaphoreMeta = {__name = "semaphore", __metatable = "semaphore", __index = Semaphore, __unsendable = true}

local semaphore = {}

function semaphore.new(permits)
  whole(2, "the number of permits", permits)
  return setmetatable({free = permits, most = permits, waiters = queue()}, SemaphoreMeta)
end

local function take_permits(s, id, wanted)
  s.free = s.free - wanted
  local task = tasks[id]
  if not task then return end
  for _, entry in ipairs(task.permits) do
    if entry.semaphore == s then
      entry.permits = entry.permits + wanted
      return
    end
  end
  task.permits[#task.permits + 1] = {semaphore = s, permits = wanted}
end

give_permits = function(s, permits)
  s.free = s.free + permits
  while true do
    local group = s.waiters[s.waiters.first]
    if group and (group.gone or group.fired) then
      pop(s.waiters)
    elseif group and group.wanted <= s.free then
      pop(s.waiters)
      take_permits(s, group.task, group.wanted)
      served(group, 1)
    else
      return
    end
  end
end

function Semaphore:acquire(wanted, timeout)
  wanted = whole(2, "the number of permits", wanted or 1)
  if wanted > self.most then
    fail(2, "too_many", wanted .. " permits were wanted of a semaphore that has " .. self.most)
  end
  local id = current()
  if self.free >= wanted and self.waiters.first > self.waiters.last then
    take_permits(self, id, wanted)
    return true
  end
  local group = stand(id)
  group.wanted = wanted
  push(self.waiters, group)
  if not park(2, group, {self.waiters}, timeout) then
    give_permits(self, 0)
    return false, "timeout"
  end
  return true
end

function Semaphore:release(permits)
  permits = whole(2, "the number of permits", permits or 1)
  local task = tasks[current()]
  local held, at = 0, nil
  for place, entry in ipairs(task and task.permits or {}) do
    if entry.semaphore == self then held, at = entry.permits, place end
  end
  if held < permits then fail(2, "not_owner", "this task has " .. held .. " permits, not " .. permits) end
  task.permits[at].permits = held - permits
  if held == permits then take_out(task.permits, at) end
  give_permits(self, permits)
end

---- messages and processes ----

local function send(to, topic, payload)
  local ok, why, message = native.send(to, topic, payload)
  if ok == nil then fail(2, why, message) end
  return ok, why
end

local function receive(topic, timeout)
  if type(topic) == "number" then topic, timeout = nil, topic end
  if timeout then number(2, "a timeout", timeout) end
  -- A message is three values; or a kind and what went wrong.
  local ok, first, second, from = suspend(ops.receive, topic, timeout)
  if ok then return {topic = first, payload = second, from = from} end
  if first == "timeout" then return nil, "timeout" end
  fail(2, first, second)
end

-- Functions of the host that answer at once.
local function direct(name)
  local call = native[name]
  return function(...) return checked(1, call(...)) end
end

-- Functions of the host that wait.
local function waiting(op)
  return function(...) return wait(1, op, ...) end
end

local process = {
  self = native.self,
  args = nil,
  script = config.script,
  spawn = direct("spawn_process"),
  cancel = direct("cancel"),
  kill = direct("kill"),
  alive = direct("alive"),
  link = direct("link"),
  unlink = direct("unlink"),
  trap_links = direct("trap_links"),
  monitor = direct("monitor"),
  demonitor = direct("demonitor"),
  register = direct("register"),
  unregister = direct("unregister"),
  whereis = direct("whereis"),
  join = direct("join"),
  leave = direct("leave"),
  members = direct("members"),
  broadcast = direct("broadcast"),
  pid = direct("to_pid"),
}

local on_upgrade

function process.on_upgrade(fn) on_upgrade = fn end

function process.upgrade(state) return wait(1, ops.upgrade, state) end

local supervisor = {start = direct("start_supervisor"), tree = waiting(ops.tree), stop = direct("cancel")}

local timer = {after = waiting(ops.timer_after), every = waiting(ops.timer_every), stop = waiting(ops.timer_stop)}

local fs = {
  read = waiting(ops.fs_read), write = waiting(ops.fs_write), append = waiting(ops.fs_append),
  list = waiting(ops.fs_list), stat = waiting(ops.fs_stat), remove = waiting(ops.fs_remove),
  mkdir = waiting(ops.fs_mkdir),
}

local http = {request = waiting(ops.http)}

function http.get(url, options)
  options = options or {}
  return wait(1, ops.http, {url = url, method = "GET", headers = options.headers, timeout = options.timeout})
end

function http.post(url, body, options)
  options = options or {}
  return wait(1, ops.http, {url = url, method = "POST", body = body, headers = options.headers, timeout = options.timeout})
end

local json = {encode = direct("json_encode"), decode = direct("json_decode"), null = native.null}

---- logging ----

local function joined(...)
  local parts = pack(...)
  for place = 1, parts.n do parts[place] = show(parts[place]) end
  return concat(parts, "\t", 1, parts.n)
end

local log = {}
for _, level in ipairs {"debug", "info", "warn", "error"} do
  log[level] = function(...) native.log(level, joined(...)) end
end

local function print(...) native.print(joined(...)) end

---- the standard library, as far as it is ours ----

local coroutine_ = {
  create = co.create, resume = co.resume, wrap = co.wrap, yield = co.yield, close = co.close,
  status = coroutine.status, isyieldable = coroutine.isyieldable,
}

local running = coroutine.running
function coroutine_.running() return running(), co.is_task() end

local raw_setmetatable = setmetatable
local function setmetatable_(value, meta)
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    fail(2, "sandbox", "__gc is not available to scripts: use close, or a to-be-closed variable")
  end
  return raw_setmetatable(value, meta)
end

local env

local raw_load = load
local function load_(chunk, name, mode, ...)
  if mode ~= nil and mode ~= "t" then fail(2, "sandbox", "only text can be loaded, no bytecode") end
  if select("#", ...) > 0 then return raw_load(chunk, name, "t", (...)) end
  -- Not the globals of the state: those are the host's.
  return raw_load(chunk, name, "t", env)
end

-- Modules come from the script's own folder.
local loaded = {}
local loading = {}
local function require(name)
  local module = loaded[name]
  if module ~= nil then return module end
  if loading[name] then fail(2, "require", "module '" .. tostring(name) .. "' requires itself") end
  local text, chunk_name = checked(2, native.module(name))
  local chunk, problem = raw_load(text, chunk_name, "t", env)
  if not chunk then fail(2, "require", problem) end
  loading[name] = true
  local ok, value = pcall(chunk, name)
  loading[name] = nil
  if not ok then error(value, 0) end
  if value == nil then value = true end
  loaded[name] = value
  return value
end

local function copy(from, ...)
  local to = {}
  for _, name in ipairs {...} do to[name] = from[name] end
  return to
end

env = {
  assert = assert, collectgarbage = function(what)
    what = what or "collect"
    if what ~= "collect" and what ~= "count" and what ~= "step" then
      fail(2, "sandbox", "collectgarbage does 'collect', 'count' and 'step' here")
    end
    return collectgarbage(what)
  end,
  error = error, getmetatable = function(value)
    -- The metatable of strings is everybody's.
    if type(value) == "string" then return nil end
    return getmetatable(value)
  end,
  ipairs = ipairs, next = next, pairs = pairs_, pcall = pcall, print = print, rawequal = rawequal, rawget = rawget,
  rawlen = rawlen, rawset = rawset, select = select, setmetatable = setmetatable_, tonumber = tonumber,
  tostring = tostring, type = type, xpcall = xpcall, load = load_, require = require, _VERSION = _VERSION,
  coroutine = coroutine_,
  table = copy(table, "concat", "insert", "move", "pack", "remove", "sort", "unpack"),
  string = string,
  utf8 = copy(utf8, "char", "charpattern", "codes", "codepoint", "len", "offset"),
  math = math,
  os = {
    time = direct("time"), clock = native.clock, date = direct("date"), difftime = function(a, b) return a - b end,
    getenv = direct("getenv"),
  },
  debug = {traceback = function(message, level)
    if message ~= nil and type(message) ~= "string" and type(message) ~= "number" then return message end
    local calls = native.without_prelude(traceback((level or 1) + 1))
    return message and (message .. "\n" .. calls) or calls
  end},
  spawn = function(fn, ...)
    if type(fn) ~= "function" then fail(2, "argument", "spawn takes a function, not a " .. type(fn)) end
    return make(fn, ...)
  end,
  await = await, sleep = function(seconds) wait(2, ops.sleep, number(2, "a time", seconds)) end,
  yield = function() wait(2, ops.yield) end,
  send = send, receive = receive, now = native.now, process = process, supervisor = supervisor, timer = timer,
  channel = channel, mutex = mutex, semaphore = semaphore, fs = fs, http = http, json = json, log = log,
  buffer = direct("buffer"), blocking = waiting(ops.blocking),
}
env._G = env
local randomseed = math.randomseed
function math.randomseed(...)
  -- Without a seed it is chance, which a replay has to know.
  if select("#", ...) == 0 then return randomseed(native.random(), native.random()) end
  return randomseed(...)
end
for name, text_function in pairs_(native.patterns) do
  env.string[name] = function(...) return checked(1, text_function(...)) end
end

if config.fixed then
  -- What is recorded must come out in the same order again: keys are sorted, and addresses are numbers that count.
  local rank = {number = 1, string = 2, boolean = 3}
  local function before(a, b)
    local x, y = rank[type(a)] or 4, rank[type(b)] or 4
    if x ~= y then return x < y end
    if x == 1 or x == 2 then return a < b end
    if x == 3 then return a and not b end
    return false
  end
  local function keys_of(t)
    local keys = {}
    for key in next, t do keys[#keys + 1] = key end
    local plain = {}
    local others = {}
    for _, key in ipairs(keys) do
      if rank[type(key)] then plain[#plain + 1] = key else others[#others + 1] = key end
    end
    sort(plain, before)
    for _, key in ipairs(others) do plain[#plain + 1] = key end
    return plain
  end
  env.pairs = function(t)
    local meta = getmetatable(t)
    if meta and type(meta) == "table" and meta.__pairs then return meta.__pairs(t) end
    if type(t) ~= "table" then fail(2, "argument", "pairs takes a table, not a " .. type(t)) end
    local keys, place = keys_of(t), 0
    return function()
      while true do
        place = place + 1
        local key = keys[place]
        if key == nil then return nil end
        local value = t[key]
        if value ~= nil then return key, value end
      end
    end, t, nil
  end
  env.next = function(t, key)
    local keys = keys_of(t)
    if key == nil then
      if keys[1] == nil then return nil end
      return keys[1], t[keys[1]]
    end
    for place, there in ipairs(keys) do
      if there == key then
        local after = keys[place + 1]
        if after == nil then return nil end
        return after, t[after]
      end
    end
  end
  local names, last = setmetatable({}, {__mode = "k"}), 0
  env.tostring = function(value)
    local kind = type(value)
    local meta = getmetatable(value)
    -- Of what is made here, tasks and errors have texts of their own.
    local says = meta == "task" or meta == "error" or (type(meta) == "table" and meta.__tostring)
    local named = (kind == "table" and not says) or kind == "function" or kind == "thread"
    if not named then return tostring(value) end
    if not names[value] then
      last = last + 1
      names[value] = last
    end
    return (type(meta) == "string" and meta or kind) .. ": " .. names[value]
  end
  show = env.tostring
end

---- what the host calls ----

local host = {}
host.env = env

-- Starts `main` of the script that `chunk` is.
function host.main(chunk, entry, ...)
  process.args = pack(...)
  process.args.n = nil
  local args = pack(...)
  local task = make(function()
    chunk(unpack(args, 1, args.n))
    local main = rawget(env, entry) or rawget(env, "main")
    if main then return main(unpack(args, 1, args.n)) end
  end)
  task.main = true
  return task.id
end

function host.upgrade()
  if not on_upgrade then return false end
  make(function()
    local ok, e = pcall(function() wait(1, ops.upgrade, on_upgrade()) end)
    if not ok then native.log("error", "the new code is not used: " .. show(e)) end
  end)
  return true
end

-- The failures that nobody has got.
function host.report() for task in pairs_(failed) do report(task) end end

return host
