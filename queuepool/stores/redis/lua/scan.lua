-- scan.lua: one page of all keys, at the node of a cluster that has them; SCAN alone runs at any node.
-- Source:  none.
-- KEYS     1 a key of their slot
-- ARGV     1 cursor, 0 = begin   2 pattern   3 keys that the server reads
-- Returns  {next cursor, 0 = the end; {key, ...}}
return redis.call('scan', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
