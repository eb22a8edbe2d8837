-- forget.lua: keep for some seconds only what became of jobs that were to come from another store.
-- Source:  none.
-- KEYS     what became of each
-- ARGV     1 the seconds
-- Returns  nothing
for _, key in ipairs(KEYS) do redis.call('expire', key, ARGV[1]) end
