-- jobs
create table "jobs" ("id" integer not null primary key autoincrement, "queue" varchar not null, "payload" text not null, "attempts" integer not null, "reserved_at" integer, "available_at" integer not null, "created_at" integer not null);
create index "jobs_queue_index" on "jobs" ("queue");
-- failed_jobs
create table "failed_jobs" ("id" integer not null primary key autoincrement, "uuid" varchar not null, "connection" varchar not null, "queue" varchar not null, "payload" text not null, "exception" text not null, "failed_at" datetime default CURRENT_TIMESTAMP not null);
create index "failed_jobs_connection_queue_failed_at_index" on "failed_jobs" ("connection", "queue", "failed_at");
create unique index "failed_jobs_uuid_unique" on "failed_jobs" ("uuid");
-- cache
create table "cache" ("key" varchar not null, "value" text not null, "expiration" integer not null, primary key ("key"));
create index "cache_expiration_index" on "cache" ("expiration");
-- cache_locks
create table "cache_locks" ("key" varchar not null, "owner" varchar not null, "expiration" integer not null, primary key ("key"));
create index "cache_locks_expiration_index" on "cache_locks" ("expiration");
-- queuepool_steps
create table "queuepool_steps" ("job" varchar not null, "name" blob not null, "value" text not null, "written" integer not null, primary key ("job", "name"));
create index "queuepool_steps_written_index" on "queuepool_steps" ("written");
-- queuepool_flows
create table "queuepool_flows" ("id" varchar not null primary key, "name" varchar not null, "names" text not null, "state" varchar not null, "total" integer not null, "roots" integer not null, "stops" integer not null, "keep" real not null, "created" real not null, "deadline" real not null, "look" real not null, "ended" real, "alarm_queue" varchar, "alarm" text);
create index "queuepool_flows_look_index" on "queuepool_flows" ("look");
create index "queuepool_flows_ended_index" on "queuepool_flows" ("ended");
-- queuepool_members
create table "queuepool_members" ("flow" varchar not null, "n" varchar not null, "state" varchar not null, "rule" varchar not null, "queue" varchar not null, "delay" real not null, "open" integer not null, "bad" integer not null, "spent" integer not null, "held" integer not null, "striped" integer not null, "payload" text, "result" text, "name" varchar, primary key ("flow", "n"));
create index "queuepool_members_state_index" on "queuepool_members" ("state", "flow", "n");
-- queuepool_edges
create table "queuepool_edges" ("flow" varchar not null, "pred" varchar not null, "succ" varchar not null, primary key ("flow", "pred", "succ"));
-- queuepool_joins
create table "queuepool_joins" ("flow" varchar not null, "n" varchar not null, "stripe" integer not null, "open" integer not null, "bad" integer not null, primary key ("flow", "n", "stripe"));
-- queuepool_limits
create table "queuepool_limits" ("key" varchar not null primary key, "number" integer null, "per" real null, "by_hand" integer null, "turn" integer not null, "look" real null);
create index "queuepool_limits_look_index" on "queuepool_limits" ("look");
-- queuepool_rings
create table "queuepool_rings" ("key" varchar not null, "queue" varchar not null, "part" varchar not null, "turn" integer not null, primary key ("key", "queue", "part"));
create index "queuepool_rings_key_turn_index" on "queuepool_rings" ("key", "turn");
-- queuepool_places
create table "queuepool_places" ("key" varchar not null, "holder" varchar not null, "until" real not null, "queue" varchar not null, "granted" integer null, primary key ("key", "holder"));
create index "queuepool_places_holder_index" on "queuepool_places" ("holder");
-- queuepool_parked
create table "queuepool_parked" ("id" integer not null primary key, "key" varchar not null, "part" varchar not null, "queue" varchar not null, "asked" text not null, "job" varchar not null);
create index "queuepool_parked_key_index" on "queuepool_parked" ("key", "queue", "part", "id");
create index "queuepool_parked_queue_index" on "queuepool_parked" ("queue", "id");
