-- Channels, mutexes and semaphores of the tasks of one process. A part of the prelude: no other
-- task runs while one is inside code of this file.
local native, co, ops, standard, tasks, fail, number, tell_again, show = ...
local type, setmetatable, getmetatable, ipairs, pcall, error = type, setmetatable, getmetatable, ipairs, pcall, error
local suspend, current, wake, floor, math_type = co.suspend, co.current, native.wake, standard.floor, standard.math_type

local function whole(level, what, value)
  if math_type(value) ~= "integer" or value < 1 then
    fail(level + 1, "argument", what .. " must be a whole number from 1 on, not " .. show(value))
  end
  return value
end

---- queues ----

-- Not `table.remove`: where that is long, other tasks run in between.
local function take_out(list, place)
  while list[place] ~= nil do
    list[place] = list[place + 1]
    place = place + 1
  end
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

-- A task waits: `group` is shared by all the places where it stands in line, and says what came
-- of it.
local function stand(task_id) return {task = task_id} end

local function served(group, which, value, ok)
  group.fired, group.value, group.ok = which, value, ok
  wake(group.task)
end

-- Parks the task until it is served; takes it out of line if something else comes first.
local function park(level, group, queues, timeout)
  local ok, kind, message = suspend(ops.park, timeout)
  if group.fired then
    tell_again(ok, kind, message)
    return true
  end
  group.gone = true
  for _, q in ipairs(queues) do remove(q, group.entries and group.entries[q] or group) end
  if kind == "timeout" then return false end
  fail(level + 1, kind or "cancelled", message or "cancelled")
end

local pass_mutex, give_permits

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

-- The first task in line that has not been served elsewhere.
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

-- The place of the first case that can go on, and what it gave. A channel is a receive, {channel,
-- value} a send.
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
  if task then
    local held = task.held or {}
    task.held = held
    held[#held + 1] = m
  end
end

pass_mutex = function(m)
  local task = tasks[m.owner]
  if task then
    for place, held in ipairs(task.held or {}) do
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
  local permits = task.permits or {}
  task.permits = permits
  for _, entry in ipairs(permits) do
    if entry.semaphore == s then
      entry.permits = entry.permits + wanted
      return
    end
  end
  permits[#permits + 1] = {semaphore = s, permits = wanted}
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

-- A task has ended: others get what it had.
local function release(task)
  for _, held in ipairs(task.held or {}) do pass_mutex(held) end
  for _, entry in ipairs(task.permits or {}) do give_permits(entry.semaphore, entry.permits) end
end

return {
  new_channel = channel.new, select = channel.select, new_mutex = mutex.new, new_semaphore = semaphore.new,
  release = release,
}
