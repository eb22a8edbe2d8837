-- jobs
create table "jobs" ("id" bigserial primary key not null, "queue" varchar(255) not null, "payload" text not null, "attempts" smallint not null, "reserved_at" integer null, "available_at" integer not null, "created_at" integer not null);
create index "jobs_queue_index" on "jobs" ("queue");
-- failed_jobs
create table "failed_jobs" ("id" bigserial primary key not null, "uuid" varchar(255) not null, "connection" varchar(255) not null, "queue" varchar(255) not null, "payload" text not null, "exception" text not null, "failed_at" timestamp(0) without time zone default CURRENT_TIMESTAMP not null);
create index "failed_jobs_connection_queue_failed_at_index" on "failed_jobs" ("connection", "queue", "failed_at");
alter table "failed_jobs" add constraint "failed_jobs_uuid_unique" unique ("uuid");
-- cache
create table "cache" ("key" varchar(255) not null, "value" text not null, "expiration" bigint not null);
alter table "cache" add primary key ("key");
create index "cache_expiration_index" on "cache" ("expiration");
-- cache_locks
create table "cache_locks" ("key" varchar(255) not null, "owner" varchar(255) not null, "expiration" bigint not null);
alter table "cache_locks" add primary key ("key");
create index "cache_locks_expiration_index" on "cache_locks" ("expiration");
-- queuepool_steps
create table "queuepool_steps" ("job" varchar(128) not null, "name" bytea not null, "value" text not null, "written" bigint not null, primary key ("job", "name"));
create index "queuepool_steps_written_index" on "queuepool_steps" ("written");
-- queuepool_flows
create table "queuepool_flows" ("id" varchar(22) primary key not null, "name" varchar(255) not null, "names" text not null, "state" varchar(9) not null, "total" integer not null, "roots" integer not null, "stops" smallint not null, "keep" double precision not null, "created" double precision not null, "deadline" double precision not null, "look" double precision not null, "ended" double precision null, "alarm_queue" varchar(255) null, "alarm" text null);
create index "queuepool_flows_look_index" on "queuepool_flows" ("look");
create index "queuepool_flows_ended_index" on "queuepool_flows" ("ended");
-- queuepool_members
create table "queuepool_members" ("flow" varchar(22) not null, "n" varchar(64) not null, "state" char(1) not null, "rule" char(1) not null, "queue" varchar(255) not null, "delay" double precision not null, "open" integer not null, "bad" integer not null, "spent" smallint not null, "held" smallint not null, "striped" smallint not null, "payload" text null, "result" text null, "name" varchar(255) null, primary key ("flow", "n"));
create index "queuepool_members_state_index" on "queuepool_members" ("state", "flow", "n");
-- queuepool_edges
create table "queuepool_edges" ("flow" varchar(22) not null, "pred" varchar(64) not null, "succ" varchar(64) not null, primary key ("flow", "pred", "succ"));
-- queuepool_joins
create table "queuepool_joins" ("flow" varchar(22) not null, "n" varchar(64) not null, "stripe" smallint not null, "open" integer not null, "bad" integer not null, primary key ("flow", "n", "stripe"));
-- queuepool_limits
create table "queuepool_limits" ("key" varchar(191) primary key not null, "number" integer null, "per" double precision null, "by_hand" integer null, "turn" bigint not null, "look" double precision null);
create index "queuepool_limits_look_index" on "queuepool_limits" ("look");
-- queuepool_rings
create table "queuepool_rings" ("key" varchar(191) not null, "queue" varchar(255) not null, "part" varchar(64) not null, "turn" bigint not null, primary key ("key", "queue", "part"));
create index "queuepool_rings_key_turn_index" on "queuepool_rings" ("key", "turn");
-- queuepool_places
create table "queuepool_places" ("key" varchar(191) not null, "holder" varchar(255) not null, "until" double precision not null, "queue" varchar(255) not null, "granted" bigint null, primary key ("key", "holder"));
create index "queuepool_places_holder_index" on "queuepool_places" ("holder");
-- queuepool_parked
create table "queuepool_parked" ("id" bigint primary key not null, "key" varchar(191) not null, "part" varchar(64) not null, "queue" varchar(255) not null, "asked" text not null, "job" varchar(24) not null);
create index "queuepool_parked_key_index" on "queuepool_parked" ("key", "queue", "part", "id");
create index "queuepool_parked_queue_index" on "queuepool_parked" ("queue", "id");
