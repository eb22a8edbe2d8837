<?php

/**
 * What the dashboard of the real Laravel Horizon would be answered: php horizon.php COMMAND [ARG ...]
 *
 * QP_HORIZON  the folder of Horizon's source (laravel/horizon, 5.x)   QP_SOCKET  Redis' unix socket
 * QP_PREFIX  prefix of the application's keys   QP_HORIZON_PREFIX  horizon.prefix of its configuration
 *
 * dashboard  the answers of its API, by name     snapshot  artisan horizon:snapshot     trim  what a master trims
 * push CLASS QUEUE  push as Horizon's queue does, for its pending jobs     retry ID  the button of a failed job
 */

declare(strict_types=1);

namespace Illuminate\Routing {
    class Controller
    {
        public function middleware($middleware)
        {
        }
    }
}

namespace Illuminate\Http {
    class Request
    {
        public function query($key, $default = null)
        {
            return $default;
        }
    }
}

namespace {
    error_reporting(E_ALL & ~E_DEPRECATED);
    ini_set('display_errors', 'stderr');

    use Illuminate\Bus\Dispatcher as Bus;
    use Illuminate\Container\Container;
    use Illuminate\Contracts\Bus\Dispatcher as BusContract;
    use Illuminate\Contracts\Events\Dispatcher as EventsContract;
    use Illuminate\Contracts\Queue\Factory as QueueFactory;
    use Illuminate\Contracts\Redis\Factory as RedisFactory;
    use Illuminate\Events\Dispatcher as Events;
    use Illuminate\Queue\QueueManager;
    use Illuminate\Redis\RedisManager;
    use Illuminate\Support\Arr;
    use Illuminate\Support\Facades\Facade;
    use Laravel\Horizon\Connectors\RedisConnector;
    use Laravel\Horizon\Contracts\JobRepository;
    use Laravel\Horizon\Contracts\MetricsRepository;
    use Laravel\Horizon\Events\JobPushed;
    use Laravel\Horizon\Http\Controllers;
    use Laravel\Horizon\Jobs\RetryFailedJob;
    use Laravel\Horizon\Listeners\StoreJob;

    foreach (['Events', 'Redis', 'Queue', 'Cache', 'Bus', 'Console'] as $part) {
        require_once "Illuminate/$part/autoload.php";
    }
    require_once 'Ramsey/Uuid/autoload.php';

    spl_autoload_register(function (string $class): void {
        if (str_starts_with($class, 'Laravel\\Horizon\\')) {
            require getenv('QP_HORIZON').'/src/'.strtr(substr($class, 16), '\\', '/').'.php';
        }
    });

    /** Laravel's own helpers, which belong to none of its parts. */
    function app($name = null)
    {
        return $name === null ? Container::getInstance() : Container::getInstance()->make($name);
    }

    function config($key, $default = null)
    {
        static $known = [];
        if (! is_array($key)) {
            return Arr::get($known, $key, $default);
        }
        foreach ($key as $name => $value) {
            Arr::set($known, $name, $value);
        }
    }

    config([
        'app.env' => 'production',
        'horizon' => [
            'prefix' => getenv('QP_HORIZON_PREFIX'),
            'environments' => ['production' => ['supervisor-1' => ['connection' => 'redis', 'queue' => ['default']]]],
        ] + (fn () => ['trim' => ['recent' => 60, 'pending' => 60, 'completed' => 60, 'failed' => 10080,
            'recent_failed' => 10080, 'monitored' => 10080]])(),
        'database.redis.default' => ['host' => getenv('QP_SOCKET'), 'port' => 0, 'database' => 0],
        'database.redis.options' => ['prefix' => getenv('QP_PREFIX')],
        'queue.connections.redis' => [
            'driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'retry_after' => 90,
        ],
        'queue.default' => 'redis',
    ]);

    $container = new Container;
    Container::setInstance($container);
    Facade::setFacadeApplication($container);
    $container->instance('events', new Events($container));
    $container->instance(EventsContract::class, $container['events']);
    $container->instance(BusContract::class, new Bus($container));
    $container->instance('config', new class implements ArrayAccess {
        public function offsetExists(mixed $key): bool { return config($key) !== null; }

        public function offsetGet(mixed $key): mixed { return config($key); }

        public function offsetSet(mixed $key, mixed $value): void { config([$key => $value]); }

        public function offsetUnset(mixed $key): void { }
    });
    Laravel\Horizon\Horizon::use('default');
    $redis = new RedisManager($container, 'phpredis', config('database.redis'));
    $container->instance('redis', $redis);
    $container->instance(RedisFactory::class, $redis);
    $queues = new QueueManager($container);
    $queues->addConnector('redis', fn () => new RedisConnector($redis));
    $container->instance('queue', $queues);
    $container->instance(QueueFactory::class, $queues);
    $bindings = (new class { use Laravel\Horizon\ServiceBindings; })->serviceBindings;
    foreach ($bindings as $contract => $class) {
        is_int($contract) ? $container->singleton($class) : $container->singleton($contract, $class);
    }
    $container['events']->listen(JobPushed::class, StoreJob::class);

    $answer = fn (string $controller, string $method = 'index', ...$arguments) => $container->call(
        [$container->make("Laravel\\Horizon\\Http\\Controllers\\$controller"), $method], $arguments
    );
    $commands = [
        'dashboard' => fn () => [
            'stats' => $answer('DashboardStatsController'),
            'masters' => $answer('MasterSupervisorController'),
            'workload' => $answer('WorkloadController'),
            'jobs' => $answer('JobMetricsController'),
            'queues' => $answer('QueueMetricsController'),
            'pending' => $answer('PendingJobsController'),
            'completed' => $answer('CompletedJobsController'),
            'failed' => $answer('FailedJobsController'),
            'of_job' => collect(app(MetricsRepository::class)->measuredJobs())
                ->mapWithKeys(fn ($job) => [$job => $answer('JobMetricsController', 'show', id: $job)]),
            'of_queue' => collect(app(MetricsRepository::class)->measuredQueues())
                ->mapWithKeys(fn ($queue) => [$queue => $answer('QueueMetricsController', 'show', id: $queue)]),
        ],
        'snapshot' => fn () => app(MetricsRepository::class)->snapshot(),
        'trim' => fn () => [app(JobRepository::class)->trimRecentJobs(), app(JobRepository::class)->trimFailedJobs()],
        'push' => fn ($class, $queue) => $queues->connection('redis')->push($class, ['id' => 7], $queue),
        'retry' => fn ($id) => (new RetryFailedJob($id))->handle($queues, app(JobRepository::class)),
    ];
    echo json_encode($commands[$argv[1]](...array_slice($argv, 2)), JSON_THROW_ON_ERROR), "\n";
}
