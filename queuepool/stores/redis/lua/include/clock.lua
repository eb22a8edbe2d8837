-- Unix seconds of the server's clock; a test passes its own.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('time')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end
