-- What a caught error was about. A key of the wrong type concerns its own queue alone; what the server says of itself
-- is raised again: an answer would say that something was done, or that it was not there.
local OF_THE_SERVER = {'READONLY', 'NOREPLICAS', 'MISCONF', 'OOM', 'MASTERDOWN', 'LOADING', 'BUSY'}

local function text_of(problem)
  return type(problem) == 'table' and problem.err or tostring(problem)
end

-- The text of an error that is one queue's own.
local function of_its_queue(problem)
  local text = text_of(problem)
  for _, word in ipairs(OF_THE_SERVER) do
    if string.find(text, word, 1, true) then error(problem, 0) end
  end
  return text
end

local function is_wrong_type(problem)
  return string.find(text_of(problem), 'WRONGTYPE', 1, true) ~= nil
end
