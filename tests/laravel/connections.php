<?php

/** Where the peer's queue, cache and failed jobs are: in the database that QP_URL names, else in Redis. */

declare(strict_types=1);

use Illuminate\Cache\DatabaseStore;
use Illuminate\Cache\RedisStore;
use Illuminate\Container\Container;
use Illuminate\Contracts\Cache\Store;
use Illuminate\Contracts\Queue\Job;
use Illuminate\Contracts\Queue\Queue;
use Illuminate\Database\Capsule\Manager as Database;
use Illuminate\Database\Connection;
use Illuminate\Queue\DatabaseQueue;
use Illuminate\Queue\Failed\DatabaseUuidFailedJobProvider;
use Illuminate\Queue\Failed\FailedJobProviderInterface;
use Illuminate\Queue\Jobs\DatabaseJob;
use Illuminate\Queue\Jobs\DatabaseJobRecord;
use Illuminate\Queue\Jobs\RedisJob;
use Illuminate\Queue\RedisQueue;
use Illuminate\Redis\RedisManager;
use Illuminate\Support\ConfigurationUrlParser;

function place_for(Container $container): Place
{
    $url = getenv('QP_URL');

    return $url ? new DatabasePlace($container, $url) : new RedisPlace($container);
}

interface Place
{
    /** The connection, as config/queue.php has it. */
    public function queue(): array;

    public function cache(string $prefix): Store;

    /** The name that the store itself knows a key of the cache by. */
    public function keyOf(Store $cache, string $key): string;

    public function failer(): FailedJobProviderInterface;

    /** The database of `job_batches`. */
    public function batches(): Connection;

    /** What proves that the job is reserved. */
    public function proof(?Job $job): array;

    /** The job of an order, as a worker that reserved it has it. */
    public function held(Queue $queue, array $order): Job;

    /** Push for later what is a payload already; for Laravel's own use only, therefore protected. */
    public function laterRaw(Queue $queue, array $order): mixed;

    /** Laravel's tables, in the shape of that version; SQLite's file too, if it is missing. */
    public function migrate(string $shape): void;
}

class RedisPlace implements Place
{
    public function __construct(private Container $container)
    {
        $redis = ['host' => getenv('QP_SOCKET'), 'port' => 0, 'database' => 0, 'password' => getenv('QP_PASSWORD') ?: null];
        $container->instance('redis', new RedisManager($container, 'phpredis', [
            'options' => ['prefix' => getenv('QP_PREFIX') ?: ''], 'default' => $redis,
        ]));
    }

    public function queue(): array
    {
        return ['driver' => 'redis', 'connection' => 'default', 'block_for' => null];
    }

    public function cache(string $prefix): Store
    {
        return new RedisStore($this->container['redis'], $prefix);
    }

    public function keyOf(Store $cache, string $key): string
    {
        return getenv('QP_PREFIX').$cache->getPrefix().$key;
    }

    public function failer(): FailedJobProviderInterface
    {
        $url = getenv('QP_FAILED_URL');

        return $url ? (new DatabasePlace($this->container, $url))->failer() : new AppendingFailer;
    }

    public function batches(): Connection
    {
        return (new DatabasePlace($this->container, getenv('QP_BATCHES_URL')))->batches();
    }

    public function proof(?Job $job): array
    {
        return ['reserved' => $job?->getReservedJob()];
    }

    public function held(Queue $queue, array $order): Job
    {
        return new RedisJob(
            $this->container, $queue, $order['raw'], $order['receipt'], 'default', $order['queue']
        );
    }

    public function laterRaw(Queue $queue, array $order): mixed
    {
        $later = fn () => $queue->laterRaw($order['delay'], $order['raw'], $order['queue']);

        return Closure::bind($later, null, RedisQueue::class)();
    }

    public function migrate(string $shape): void
    {
        throw new LogicException('Redis has no tables');
    }
}

class DatabasePlace implements Place
{
    /** What config/database.php of a new application says of each driver. */
    private const USUAL = [
        'sqlite' => ['foreign_key_constraints' => true],
        'pgsql' => ['charset' => 'utf8', 'schema' => 'public', 'sslmode' => 'prefer'],
        'mysql' => ['charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'strict' => true, 'engine' => null],
    ];

    private const DRIVERS = ['postgresql' => 'pgsql', 'mariadb' => 'mysql'];

    private array $settings;

    public function __construct(private Container $container, string $url)
    {
        [$scheme, $rest] = explode('://', $url, 2);
        $driver = self::DRIVERS[$scheme] ?? $scheme;
        // PHP parses no URL without a host, and Laravel reads the host "null" as none.
        $url = "$driver://".preg_replace('#^([^/@]*@)?/#', '$1null/', $rest);
        $usual = ['prefix' => '', 'prefix_indexes' => true] + self::USUAL[$driver];
        $this->settings = (new ConfigurationUrlParser)->parseConfiguration(['url' => $url] + $usual);
        $database = new Database($container);
        $database->addConnection($this->settings);
        $container->instance('db', $database->getDatabaseManager());
    }

    public function queue(): array
    {
        return ['driver' => 'database', 'table' => getenv('QP_JOBS') ?: 'jobs'];
    }

    public function cache(string $prefix): Store
    {
        return new DatabaseStore($this->container['db']->connection(), getenv('QP_CACHE') ?: 'cache', $prefix);
    }

    public function keyOf(Store $cache, string $key): string
    {
        return $cache->getPrefix().$key;
    }

    public function failer(): FailedJobProviderInterface
    {
        return new DatabaseUuidFailedJobProvider($this->container['db'], 'default', getenv('QP_FAILED') ?: 'failed_jobs');
    }

    public function batches(): Connection
    {
        return $this->container['db']->connection();
    }

    public function proof(?Job $job): array
    {
        return ['reserved_at' => $job?->getJobRecord()->reserved_at];
    }

    public function held(Queue $queue, array $order): Job
    {
        $row = (object) ['id' => $order['id'], 'payload' => $order['raw'], 'attempts' => $order['attempts']];

        return new DatabaseJob($this->container, $queue, new DatabaseJobRecord($row), 'default', $order['queue']);
    }

    public function laterRaw(Queue $queue, array $order): mixed
    {
        $later = fn () => $queue->pushToDatabase($order['queue'], $order['raw'], $order['delay']);

        return Closure::bind($later, null, DatabaseQueue::class)();
    }

    public function migrate(string $shape): void
    {
        if ($this->settings['driver'] === 'sqlite') {
            touch($this->settings['database']);
        }
        create_tables($shape);
    }
}
