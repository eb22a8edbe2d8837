-- show.lua: write the states of running jobs.
-- Source:  none; invisible to Laravel.
-- KEYS     for each job: its queue's reserved zset, its state
-- ARGV     for each job: its receipt, the tag of its worker, its state as text, seconds that this is kept
-- Returns  how many were written: a job whose lease was lost has a newer state by now
-- include: lease refusal full note_state
write_nothing(KEYS[1])
local written = 0
for i = 1, #KEYS / 2 do
  local receipt, tag, text, seconds = unpack(ARGV, 4 * i - 3, 4 * i)
  local score = redis.pcall('zscore', KEYS[2 * i - 1], receipt)
  if is_refusal(score) then redis.call('zscore', KEYS[2 * i - 1], receipt) end
  if type(score) == 'string' and is_held(score, tonumber(tag)) then
    note_state(KEYS[2 * i], text, seconds)
    written = written + 1
  end
end
return written
