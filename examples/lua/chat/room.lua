-- The room of the chat (see main.lua): knows who is in it, tells everybody what anybody says, and notices who goes
-- without a word.

local members = {}     -- in the order of joining: {name =, pid =, monitor =}
local lines = 0

local function tell(line)
  print(line)
  lines = lines + 1
  for _, member in ipairs(members) do send(member.pid, "heard", line) end
end

-- PIDs are compared with ==.
local function find(pid)
  for place, member in ipairs(members) do
    if member.pid == pid then return place, member end
  end
end

local handle = {}

function handle.join(message)
  local name = message.payload
  members[#members + 1] = {name = name, pid = message.from, monitor = process.monitor(message.from)}
  send(message.from, "welcome")
  tell(name .. " joins")
end

function handle.say(message)
  local _, member = find(message.from)
  if member then tell(member.name .. ": " .. message.payload) end
end

function handle.leave(message)
  local place, member = find(message.from)
  if not member then return end
  process.demonitor(member.monitor)
  table.remove(members, place)
  tell(member.name .. " leaves")
  send(message.from, "bye")
end

-- The end of a process that this one monitors.
function handle.exit(message)
  local place, member = find(message.payload.pid)
  if not member then return end
  table.remove(members, place)
  tell(member.name .. " is gone (" .. message.payload.kind .. ")")
end

function main()
  repeat
    local message = receive()
    local what = handle[message.topic]
    if what then what(message) end
  until #members == 0
  return lines
end
