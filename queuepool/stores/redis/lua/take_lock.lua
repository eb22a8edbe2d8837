-- take_lock.lua: take a unique lock, or keep it if this owner has it.
-- Source:  Illuminate/Cache/RedisLock.php, acquire (13.x)
-- KEYS     1 the lock
-- ARGV     1 its owner   2 seconds that it lasts
-- Returns  1, or 0 when another owner holds it
-- include: take_lock
return take_lock(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0
