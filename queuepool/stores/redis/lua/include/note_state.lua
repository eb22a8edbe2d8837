-- Write the state of a tracked job; nothing if there is none.
local function note_state(key, text, seconds)
  if text and text ~= '' then redis.call('set', key, text, 'EX', seconds) end
end

-- As note_state, if a state is kept.
local function renew_state(key, text, seconds)
  if text and text ~= '' then redis.call('set', key, text, 'EX', seconds, 'XX') end
end
