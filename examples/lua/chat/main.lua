-- A chat: a room and three chatters, each a process of its own. It shows messages, names, monitors, and how a process that
-- fails is noticed by others and harms nobody.
--   windlass run examples/lua/chat/main.lua
-- It ends by itself, prints the same every time, and gives 0.

-- Who says what when they hear what. Each line is the cue for one other, so there is one order.
local cast = {
  {name = "ann", lines = {
    ["cal joins"] = {say = "Now we are three. Bob, is the winch ready?"},
    ["bob: Ready. Which button was it?"] = {say = "Not the red one!"},
    ["cal is gone (error)"] = {say = "That was the red one."},
    ["bob leaves"] = {leave = true},
  }},
  {name = "bob", lines = {
    ["ann: Now we are three. Bob, is the winch ready?"] = {say = "Ready. Which button was it?"},
    ["ann: That was the red one."] = {leave = true},
  }},
  {name = "cal", lines = {
    ["ann: Not the red one!"] = {fail = "cal has pressed the red button"},
  }},
}

function main()
  local room = process.spawn {script = "room.lua", name = "room"}

  local chatters = {}
  for place, who in ipairs(cast) do
    chatters[place] = process.spawn("chatter.lua", who.name, who.lines, process.self())
    -- One after the other, so that they join in this order.
    assert(receive("ready", 10), who.name .. " did not join")
  end

  -- How each of them ended: awaiting is also what keeps a failure from being reported as one that nobody wanted to know.
  for place, chatter in ipairs(chatters) do
    local ok, result = pcall(await, chatter)
    local name = cast[place].name
    if ok then
      print(name .. " heard " .. result .. " lines")
    else
      print(name .. " failed: " .. tostring(result):match("error: ([^\n]*)"))
    end
  end

  -- The room is over when nobody is left in it.
  local said = await(room)
  print("lines in the room: " .. said)
  return 0
end
