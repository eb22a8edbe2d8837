-- requeue.lua: put a quarantined payload at the tail of its queue, unchanged or repaired.
-- Source:  none.
-- KEYS     1 quarantine list   2 ready list   3 notify list
-- ARGV     1 the quarantined entry   2 the payload to put on the queue
-- Returns  1, or 0 when there is no such entry
-- include: tokens
if not redis.call('lpos', KEYS[1], ARGV[1]) then return 0 end
redis.call('rpush', KEYS[2], ARGV[2])
redis.call('lrem', KEYS[1], 1, ARGV[1])
pcall(count_tokens, KEYS[2], KEYS[3])
return 1
