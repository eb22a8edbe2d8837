-- jobs
create table `jobs` (`id` bigint unsigned not null auto_increment primary key, `queue` varchar(255) not null, `payload` longtext not null, `attempts` smallint unsigned not null, `reserved_at` int unsigned null, `available_at` int unsigned not null, `created_at` int unsigned not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `jobs` add index `jobs_queue_index`(`queue`);
-- failed_jobs
create table `failed_jobs` (`id` bigint unsigned not null auto_increment primary key, `uuid` varchar(255) not null, `connection` varchar(255) not null, `queue` varchar(255) not null, `payload` longtext not null, `exception` longtext not null, `failed_at` timestamp default CURRENT_TIMESTAMP not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `failed_jobs` add index `failed_jobs_connection_queue_failed_at_index`(`connection`, `queue`, `failed_at`);
alter table `failed_jobs` add unique `failed_jobs_uuid_unique`(`uuid`);
-- cache
create table `cache` (`key` varchar(255) not null, `value` mediumtext not null, `expiration` bigint not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `cache` add primary key `cache_key_primary`(`key`);
alter table `cache` add index `cache_expiration_index`(`expiration`);
-- cache_locks
create table `cache_locks` (`key` varchar(255) not null, `owner` varchar(255) not null, `expiration` bigint not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `cache_locks` add primary key `cache_locks_key_primary`(`key`);
alter table `cache_locks` add index `cache_locks_expiration_index`(`expiration`);
-- queuepool_steps
create table `queuepool_steps` (`job` varchar(128) not null, `name` varbinary(192) not null, `value` mediumtext not null, `written` bigint not null, primary key (`job`, `name`)) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_steps` add index `queuepool_steps_written_index`(`written`);
-- queuepool_flows
create table `queuepool_flows` (`id` varchar(22) not null primary key, `name` varchar(255) not null, `names` mediumtext not null, `state` varchar(9) not null, `total` int not null, `roots` int not null, `stops` smallint not null, `keep` double not null, `created` double not null, `deadline` double not null, `look` double not null, `ended` double null, `alarm_queue` varchar(255) null, `alarm` longtext null) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_flows` add index `queuepool_flows_look_index`(`look`);
alter table `queuepool_flows` add index `queuepool_flows_ended_index`(`ended`);
-- queuepool_members
create table `queuepool_members` (`flow` varchar(22) not null, `n` varchar(64) not null, `state` char(1) not null, `rule` char(1) not null, `queue` varchar(255) not null, `delay` double not null, `open` int not null, `bad` int not null, `spent` smallint not null, `held` smallint not null, `striped` smallint not null, `payload` longtext null, `result` mediumtext null, `name` varchar(255) null, primary key (`flow`, `n`)) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_members` add index `queuepool_members_state_index`(`state`, `flow`, `n`);
-- queuepool_edges
create table `queuepool_edges` (`flow` varchar(22) not null, `pred` varchar(64) not null, `succ` varchar(64) not null, primary key (`flow`, `pred`, `succ`)) default character set utf8mb4 collate 'utf8mb4_bin';
-- queuepool_joins
create table `queuepool_joins` (`flow` varchar(22) not null, `n` varchar(64) not null, `stripe` smallint not null, `open` int not null, `bad` int not null, primary key (`flow`, `n`, `stripe`)) default character set utf8mb4 collate 'utf8mb4_bin';
-- queuepool_limits
create table `queuepool_limits` (`key` varchar(191) not null primary key, `number` int null, `per` double null, `by_hand` int null, `turn` bigint not null, `look` double null) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_limits` add index `queuepool_limits_look_index`(`look`);
-- queuepool_rings
create table `queuepool_rings` (`key` varchar(191) not null, `queue` varchar(255) not null, `part` varchar(64) not null, `turn` bigint not null, primary key (`key`, `queue`, `part`)) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_rings` add index `queuepool_rings_key_turn_index`(`key`, `turn`);
-- queuepool_places
create table `queuepool_places` (`key` varchar(191) not null, `holder` varchar(255) not null, `until` double not null, `queue` varchar(255) not null, `granted` bigint null, primary key (`key`, `holder`)) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_places` add index `queuepool_places_holder_index`(`holder`);
-- queuepool_parked
create table `queuepool_parked` (`id` bigint unsigned not null primary key, `key` varchar(191) not null, `part` varchar(64) not null, `queue` varchar(255) not null, `asked` text not null, `job` varchar(24) not null) default character set utf8mb4 collate 'utf8mb4_bin';
alter table `queuepool_parked` add index `queuepool_parked_key_index`(`key`, `queue`, `part`, `id`);
alter table `queuepool_parked` add index `queuepool_parked_queue_index`(`queue`, `id`);
