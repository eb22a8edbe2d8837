-- requeue.lua: put a quarantined payload at the tail of its queue, unchanged or repaired, under its unique lock.
-- Source:  none.
-- KEYS     1 quarantine list   2 ready list   3 notify list   4 the lock; none = it has no lock
-- ARGV     1 the quarantined entry   2 the payload to put on the queue   3 the lock's owner   4 seconds that it lasts
-- Returns  1, 0 when there is no such entry, or -1 when another job holds the lock
-- include: tokens take_lock
if not redis.call('lpos', KEYS[1], ARGV[1]) then return 0 end
redis.call('llen', KEYS[2])
if KEYS[4] and not take_lock(KEYS[4], ARGV[3], ARGV[4]) then return -1 end
redis.call('rpush', KEYS[2], ARGV[2])
redis.call('lrem', KEYS[1], 1, ARGV[1])
pcall(count_tokens, KEYS[2], KEYS[3])
return 1
