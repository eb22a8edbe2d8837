-- Classify a caught error. A key of the wrong type concerns only its own queue. An error of the whole server is raised
-- again: a reply would claim that something was done, or was not there.
local OF_THE_SERVER = {'READONLY', 'NOREPLICAS', 'MISCONF', 'OOM', 'MASTERDOWN', 'LOADING', 'BUSY'}

local function text_of(problem)
  return type(problem) == 'table' and problem.err or tostring(problem)
end

-- The text of an error that concerns only one queue; raises any other again.
local function of_its_queue(problem)
  local text = text_of(problem)
  for _, word in ipairs(OF_THE_SERVER) do
    if string.find(text, word, 1, true) then error(problem, 0) end
  end
  return text
end

-- Whether this reply of redis.pcall is an error other than a key of the wrong type. It must stop the script and not be
-- taken for a lost lease: the caller repeats the command with redis.call, which stops the script and names the command.
local function is_refusal(answer)
  return type(answer) == 'table' and answer.err and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
