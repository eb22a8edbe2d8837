-- Add to a sorted set without merging: two byte-identical payloads would become one job. A space, which JSON ignores,
-- makes them different.
local function put(zset, score, member)
  while redis.call('zadd', zset, 'NX', score, member) == 0 do
    member = string.gsub(member, '^(%s*.?)', '%1 ', 1)
  end
  return member
end
