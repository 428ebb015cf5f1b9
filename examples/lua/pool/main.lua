-- A pool of workers under a supervisor: jobs are handed out, some of them crash their worker, the supervisor starts it
-- again, and the job is tried once more. A job that crashes three workers is given up.
--   windlass run examples/lua/pool/main.lua
-- What the crashed workers say goes to the standard error. The rest is the same every time, and it gives 0.

local WORKERS = 3
local JOBS = 12
local TRIES = 3

-- What is to be done: how many primes there are up to a number. `crashes` stands for a bug.
local function make_jobs()
  local jobs = {}
  for number = 1, JOBS do
    local crashes = 0
    if number % 4 == 0 then crashes = 1 end     -- once, and then it works
    if number == 7 then crashes = TRIES end     -- every time
    jobs[number] = {number = number, up_to = number * 100, tries = 0, crashes = crashes}
  end
  return jobs
end

function main()
  process.register("pool")
  local children = {}
  for place = 1, WORKERS do
    children[place] = {id = "worker " .. place, script = "worker.lua"}
  end
  local workers = supervisor.start {children = children, backoff = 0.005, max_restarts = 100, within = 60}

  local waiting, idle, busy = make_jobs(), {}, {}
  local done, given_up, crashes = {}, {}, 0
  local left = #waiting

  local function hand_out()
    while #waiting > 0 and #idle > 0 do
      local job, worker = table.remove(waiting, 1), table.remove(idle, 1)
      job.tries = job.tries + 1
      busy[tostring(worker)] = job      -- a PID is no key: two PIDs of one process are equal, and not the same
      send(worker, "job", job)
    end
  end

  while left > 0 do
    local message = assert(receive(30), "nothing happens any more")
    if message.topic == "ready" then
      -- A worker that is new.
      process.monitor(message.from)
      idle[#idle + 1] = message.from
    elseif message.topic == "done" then
      local key = tostring(message.from)
      done[busy[key].number] = {primes = message.payload, tries = busy[key].tries}
      busy[key] = nil
      idle[#idle + 1] = message.from
      left = left - 1
    elseif message.topic == "exit" then
      local key = tostring(message.payload.pid)
      local job = busy[key]
      busy[key] = nil
      crashes = crashes + 1
      if job.tries < TRIES then
        waiting[#waiting + 1] = job
      else
        given_up[#given_up + 1] = job.number
        left = left - 1
      end
    end
    hand_out()
  end

  for number = 1, JOBS do
    local result = done[number]
    if result then
      print(("job %2d: %3d primes, try %d"):format(number, result.primes, result.tries))
    else
      print(("job %2d: given up"):format(number))
    end
  end
  print(("%d done, %d given up, %d crashes"):format(JOBS - #given_up, #given_up, crashes))

  local monitor = process.monitor(workers)
  supervisor.stop(workers, "all is done")
  repeat
    local message = assert(receive("exit", 30), "the supervisor does not stop")
  until message.payload.monitor == monitor
  return crashes == 6 and 0 or 1
end
