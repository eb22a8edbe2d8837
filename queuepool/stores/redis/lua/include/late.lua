-- Refuse a call that arrives after its sender has given up: others may have changed the value or pushed since.
-- The last argument is the Unix second, by this server's clock, until which the sender waits.
local time_now = redis.call('time')
if tonumber(time_now[1]) + tonumber(time_now[2]) / 1000000 > tonumber(table.remove(ARGV)) then
  return redis.error_reply('LATE the request arrived after its sender had given up; nothing was done')
end
