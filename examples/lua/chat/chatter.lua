-- A chatter (see main.lua): joins the room, answers what it hears, and leaves when it is time.

function main(name, answers, parent)
  send("room", "join", name)
  assert(receive("welcome", 10), "there is no room")
  send(parent, "ready", name)
  local heard = 0
  while true do
    local line = receive("heard").payload
    heard = heard + 1
    local answer = answers[line] or {}
    if answer.fail then error(answer.fail, 0) end
    if answer.say then send("room", "say", answer.say) end
    if answer.leave then
      send("room", "leave")
      receive("bye")
      return heard
    end
  end
end
