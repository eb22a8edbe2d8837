-- Whether this answer of redis.pcall is an error other than that of a key of the wrong type: a right that is missing,
-- say, which must stop the script and not pass for a lease that is gone. Called again, by redis.call, it does.
local function is_refusal(answer)
  return type(answer) == 'table' and answer.err and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
