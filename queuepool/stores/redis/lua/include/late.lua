-- Refuse what is carried out after its sender has given it up: somebody may have said something else since, or pushed.
-- The second until which the sender waits, by this server's clock, is the last argument.
local time_now = redis.call('time')
if tonumber(time_now[1]) + tonumber(time_now[2]) / 1000000 > tonumber(table.remove(ARGV)) then
  return redis.error_reply('LATE nothing was done: the request was longer on its way than anybody waits for it')
end
