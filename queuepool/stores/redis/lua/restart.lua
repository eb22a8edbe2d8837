-- restart.lua: broadcast a restart to every worker on every host, Laravel's too.
-- Source:  Illuminate/Queue/Console/RestartCommand.php (13.x): the current Unix second
-- KEYS     1 the restart key
-- Returns  the second written
-- Differs  always a new value: in Laravel, a second restart within one second has no effect.
-- include: full
write_nothing(KEYS[1])
local now = tonumber(redis.call('time')[1])
local last = tonumber(redis.call('get', KEYS[1]) or '')
if last and last >= now and last < 2 ^ 53 then now = last + 1 end -- from there on, adding 1 may give the same number
redis.call('set', KEYS[1], string.format('%d', now))
return now
