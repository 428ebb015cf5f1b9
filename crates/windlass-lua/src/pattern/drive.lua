-- The loops that call functions of scripts, or keep something for them. They hold nothing that is shared: they may
-- be left in between at any time.
local native = ...
local begin, following, substitute, advance = native.begin, native.following, native.substitute, native.advance

local function gmatch(...)
  local ok, subject, pattern, at = begin(...)
  if not ok then return ok, subject, pattern end
  local before
  local function keep(place, ...)
    if place then at, before = place, place end
    return ...
  end
  return true, function() return keep(following(subject, pattern, at, before)) end
end

-- What a match becomes: nothing yet if the state is nil, for then there is one; else these are the results.
local function called(replacement, state, ...)
  if state == nil then return nil, replacement(...) end
  return state, ...
end

local function looked_up(replacement, state, first, ...)
  if state == nil then return nil, replacement[first] end
  return state, first, ...
end

local function gsub(...)
  local state, first, second, work, replacement, is_function = substitute(...)
  if state ~= nil then return state, first, second end
  -- Kept here and not by the work: what that holds, Lua cannot free before it is finalized.
  local subject, pattern, pieces = first, second, {}
  local replaced = is_function and called or looked_up
  state, first, second = replaced(replacement, advance(work, subject, pattern, pieces))
  while state == nil do
    state, first, second = replaced(replacement, advance(work, subject, pattern, pieces, first))
  end
  return state, first, second
end

return {find = native.find, match = native.match, gmatch = gmatch, gsub = gsub}
