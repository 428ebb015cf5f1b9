-- A component of smoother.yaml: lets a number change by at most STEP from one invocation to the next.
--   windlass run examples/lua/graph/smoother.yaml --steps 5

local STEP = 1

local last

function execute(inputs)
  local wanted = inputs.wanted
  local allowed = last and math.max(last - STEP, math.min(last + STEP, wanted)) or wanted
  if allowed ~= wanted then
    publish("limited", {wanted = wanted, allowed = allowed})
  end
  last = allowed
  publish("allowed", allowed)
end

function snapshot() return {last = last} end
function restore(kept) last = kept.last end
function reset() last = nil end
