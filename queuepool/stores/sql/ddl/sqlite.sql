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
