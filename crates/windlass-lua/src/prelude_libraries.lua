-- The libraries that a script looks into, and how it loads other code. A part of the prelude.
local core = ...
local native, ops, wait, direct, waiting, joined, fail, checked, concat, env =
  core.native, core.ops, core.wait, core.direct, core.waiting, core.joined, core.fail, core.checked, core.concat, core.env
local type, tostring, select, pcall, error, ipairs, rawget = type, tostring, select, pcall, error, ipairs, rawget

local process = {
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

function process.on_upgrade(fn) core.upgrade(fn) end

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

local log = {}
for _, level in ipairs {"debug", "info", "warn", "error"} do
  log[level] = function(...) native.log(level, joined(...)) end
end

-- Compiling is C's, and cannot be left: what a script makes up itself is bounded, in bytes, and in
-- what takes longer than the rest (compile_cost.rs). All that a function gives is read first.
local MOST_LOADED = 1 << 20
local TOO_LARGE = "the text is larger than 1 MiB: load it in parts, or make it a module"

local function read_all(reader)
  local pieces, size = {}, 0
  while true do
    local ok, piece = pcall(reader)
    if not ok then return nil, piece end
    if piece == nil or piece == "" then return concat(pieces) end
    if type(piece) ~= "string" and type(piece) ~= "number" then
      return nil, "reader function must return a string"
    end
    pieces[#pieces + 1] = piece
    size = size + #tostring(piece)
    if size > MOST_LOADED then return nil, TOO_LARGE end
  end
end

-- Text as a function, or nil and why not. A stack that overflows inside the compiler is an error as
-- any other for the handler of the task, which adds a traceback: that is taken off again.
local raw_load = load
local function compile(chunk, name, globals)
  local code, problem = raw_load(chunk, name, "t", globals)
  if not code and type(problem) == "table" and rawget(problem, "is_trace") then problem = problem.value end
  return code, problem
end

local function load_(chunk, name, mode, ...)
  if mode ~= nil and mode ~= "t" then fail(2, "sandbox", "only text can be loaded, no bytecode") end
  if type(chunk) == "function" then
    local problem
    chunk, problem = read_all(chunk)
    if not chunk then return nil, problem end
    name = name or "=(load)"
  end
  if type(chunk) == "string" then
    if #chunk > MOST_LOADED then return nil, TOO_LARGE end
    local problem = native.too_costly(chunk)
    if problem then return nil, problem end
  end
  if select("#", ...) > 0 then return compile(chunk, name, (...)) end
  -- Not the globals of the state: those are the host's.
  return compile(chunk, name, env)
end

-- Modules come from the script's own folder.
local loaded = {}
local loading = {}
local function require(name)
  local module = loaded[name]
  if module ~= nil then return module end
  if loading[name] then fail(2, "require", "module '" .. tostring(name) .. "' requires itself") end
  local text, chunk_name = checked(2, native.module(name))
  local chunk, problem = compile(text, chunk_name, env)
  if not chunk then fail(2, "require", problem) end
  loading[name] = true
  local ok, value = pcall(chunk, name)
  loading[name] = nil
  if not ok then error(value, 0) end
  if value == nil then value = true end
  loaded[name] = value
  return value
end

return {
  process = process, supervisor = supervisor, timer = timer, fs = fs, http = http, json = json, log = log,
  base = {load = load_, require = require},
}
