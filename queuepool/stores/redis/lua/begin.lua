-- begin.lua: give each schedule a mark: its due times up to now count as settled.
-- Source:  none.
-- KEYS     1 marks of schedules, hash: name -> JSON
-- ARGV     1 now, whole Unix seconds   then for each schedule: its name, the digest of its rule
-- Returns  the marks, as JSON, in the order of the names
-- include: full mark
write_nothing(KEYS[1])
local now, marks = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 2 do
  local name, rule = ARGV[i], ARGV[i + 1]
  local text = redis.call('hmget', KEYS[1], name)[1]
  local mark = mark_in(text)
  if not mark or mark.rule ~= rule then
    mark = {settled = math.max(now, mark and mark.settled or 0), rule = rule, pushed = mark and mark.pushed or nil}
    text = cjson.encode(mark)
    redis.call('hset', KEYS[1], name, text)
  end
  marks[#marks + 1] = text
end
return marks
