<?php

/**
 * The real Laravel queue on one Redis: php peer.php COMMAND [ARG ...] [--option[=value] ...]
 *
 * QP_SOCKET  Redis' unix socket      QP_PREFIX  prefix of every key      QP_OUT  where jobs write what they did
 * --boot=FILE  PHP to run first, as an application's service provider would
 * QP_PASSWORD  Redis' password, if it has one
 * Prints one JSON document; whatever PHP or Laravel complain about goes to stderr.
 */

declare(strict_types=1);

// Laravel 8.83 is older than PHP 8.2 and trips over its deprecations.
error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('display_errors', 'stderr');

foreach (['Events', 'Redis', 'Queue', 'Cache', 'Bus'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}
require_once __DIR__.'/jobs.php';

use App\Jobs\SendMail;
use Illuminate\Bus\Dispatcher as Bus;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository as Cache;
use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Contracts\Container\Container as ContainerContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Events\Dispatcher as EventsContract;
use Illuminate\Events\Dispatcher as Events;
use Illuminate\Queue\Capsule\Manager as Capsule;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Failed\FailedJobProviderInterface;
use Illuminate\Queue\Jobs\RedisJob;
use Illuminate\Queue\RedisQueue;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;
use Illuminate\Redis\RedisManager;
use Illuminate\Support\Carbon;

const RESTART_KEY = 'illuminate:queue:restart';

/** Writes a failed row where the jobs write. */
class AppendingFailer implements FailedJobProviderInterface
{
    public function log($connection, $queue, $payload, $exception)
    {
        $row = ['connection' => $connection, 'queue' => $queue, 'payload' => $payload];
        App\Jobs\write_line(['failed_row' => $row + ['exception' => (string) $exception]]);
    }

    public function all()
    {
        return [];
    }

    public function find($id)
    {
        return null;
    }

    public function forget($id)
    {
        return false;
    }

    public function flush()
    {
    }
}

class StderrHandler implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, get_class($e).': '.$e->getMessage()."\n");
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e)
    {
        throw $e;
    }
}

class Peer
{
    private Container $container;

    private Capsule $capsule;

    private ?string $queueName;

    public function __construct(private array $options)
    {
        $this->queueName = $options['queue'] ?? null;
        $this->container = new Container;
        Container::setInstance($this->container);
        $this->capsule = new Capsule($this->container);
        $this->bind();
        $this->capsule->addConnection([
            'driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'block_for' => null,
            'retry_after' => (int) ($options['retry-after'] ?? 90),
        ]);
    }

    public function pushString(string $name, string $data = '""'): array
    {
        // Decoded to objects, so that {} is not pushed as [].
        $data = json_decode($data, false, 512, JSON_THROW_ON_ERROR);
        $delay = (int) ($this->options['delay'] ?? 0);

        return ['id' => $delay > 0
            ? $this->queue()->later($delay, $name, $data, $this->queueName)
            : $this->queue()->push($name, $data, $this->queueName)];
    }

    /** As `SendMail::dispatch($to, $template)->onQueue(...)->delay(...)` does. */
    public function pushObject(string $to, string $template): array
    {
        $job = (new SendMail($to, $template))->onQueue($this->queueName)->delay($this->number('delay'));
        $job->tries = $this->number('tries');
        $job->timeout = $this->number('timeout');
        if (isset($this->options['fail-times'])) {
            $job->failTimes = $this->number('fail-times');
        }
        $job->backoff = isset($this->options['backoff'])
            ? array_map('intval', explode(',', $this->options['backoff'])) : null;

        return ['id' => $this->container->make(BusContract::class)->dispatch($job)];
    }

    /** As WorkCommand: the listener that logs the failed row is the command's, not the worker's. */
    public function work(): array
    {
        $failer = new AppendingFailer;
        $this->container['events']->listen(JobFailed::class, fn (JobFailed $event) => $failer->log(
            $event->connectionName, $event->job->getQueue(), $event->job->getRawBody(), $event->exception
        ));
        $worker = (new Worker(
            $this->capsule->getQueueManager(), $this->container['events'], new StderrHandler, fn () => false
        ))->setName('default')->setCache($this->cache());
        $run = isset($this->options['once']) ? 'runNextJob' : 'daemon';

        return ['status' => (int) $worker->$run('default', $this->queueName ?? 'default', $this->workerOptions())];
    }

    public function restart(): array
    {
        $cache = $this->cache();
        $cache->forever(RESTART_KEY, time());

        $key = getenv('QP_PREFIX').$cache->getStore()->getPrefix().RESTART_KEY;

        return ['keys' => [$key], 'value' => (int) $cache->get(RESTART_KEY)];
    }

    public function size(): array
    {
        return ['size' => $this->queue()->size($this->queueName)];
    }

    public function reserveHold(): array
    {
        return $this->facts($this->queue()->pop($this->queueName));
    }

    public function releaseOne(): array
    {
        $job = $this->queue()->pop($this->queueName);
        $job?->release($this->number('delay') ?? 0);

        return $this->facts($job);
    }

    /** One order per line of stdin, at the second that it names; one answer per line of stdout. */
    public function serve(): array
    {
        while (($line = fgets(STDIN)) !== false) {
            $order = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
            Carbon::setTestNow(Carbon::createFromTimestamp($order['now']));
            echo json_encode($this->obey($order), JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
            flush();
        }

        return ['served' => true];
    }

    private function obey(array $order): mixed
    {
        [$queue, $name] = [$this->queue(), $order['queue']];
        $later = fn () => $queue->laterRaw($order['delay'], $order['raw'], $name);
        $migrate = fn () => $queue->migrate($queue->getQueue($name));

        return match ($order['verb']) {
            'push' => $queue->pushRaw($order['raw'], $name),
            'later' => Closure::bind($later, null, RedisQueue::class)(),
            'stage' => Closure::bind($migrate, null, RedisQueue::class)(),
            'pop' => $this->facts($queue->pop($name)),
            'delete' => $this->held($order)->delete(),
            'release' => $this->held($order)->release($order['delay']),
            'size' => $queue->size($name),
        };
    }

    /** A job that anybody reserved. */
    private function held(array $order): RedisJob
    {
        return new RedisJob(
            $this->container, $this->queue(), $order['raw'], $order['receipt'], 'default', $order['queue']
        );
    }

    private function bind(): void
    {
        $container = $this->container;
        $redis = ['host' => getenv('QP_SOCKET'), 'port' => 0, 'database' => 0, 'password' => getenv('QP_PASSWORD') ?: null];
        $container->instance('redis', new RedisManager($container, 'phpredis', [
            'options' => ['prefix' => getenv('QP_PREFIX') ?: ''], 'default' => $redis,
        ]));
        $container->instance('events', new Events($container));
        $container->instance(EventsContract::class, $container['events']);
        $container->instance(ContainerContract::class, $container);
        $container->instance(ExceptionHandler::class, new StderrHandler);
        $container->instance(BusContract::class, new Bus($container, fn ($name) => $this->queue()));
    }

    private function queue(): RedisQueue
    {
        return $this->capsule->getConnection('default');
    }

    private function cache(): Cache
    {
        return new Cache(new RedisStore($this->container['redis'], $this->options['cache-prefix'] ?? 'laravel_cache'));
    }

    private function workerOptions(): WorkerOptions
    {
        $options = new WorkerOptions('default', $this->options['backoff'] ?? 0);
        $options->sleep = (float) ($this->options['sleep'] ?? 0.05);
        $options->timeout = $this->number('timeout') ?? 60;
        $options->maxTries = $this->number('tries') ?? 1;
        $options->maxJobs = $this->number('max-jobs') ?? 0;
        $options->maxTime = $this->number('max-time') ?? 0;
        $options->stopWhenEmpty = isset($this->options['stop-when-empty']);

        return $options;
    }

    private function facts(?RedisJob $job): array
    {
        return [
            'id' => $job?->getJobId(), 'attempts' => $job?->attempts(),
            'raw' => $job?->getRawBody(), 'reserved' => $job?->getReservedJob(),
        ];
    }

    private function number(string $option): ?int
    {
        return isset($this->options[$option]) ? (int) $this->options[$option] : null;
    }
}

[$arguments, $options] = [[], []];
foreach (array_slice($argv, 1) as $word) {
    if (str_starts_with($word, '--')) {
        [$name, $value] = explode('=', substr($word, 2), 2) + [1 => '1'];
        $options[$name] = $value;
    } else {
        $arguments[] = $word;
    }
}
if (isset($options['boot'])) {
    require $options['boot'];
}
$commands = [
    'push-string' => 'pushString', 'push-object' => 'pushObject', 'work' => 'work', 'restart' => 'restart',
    'serve' => 'serve', 'size' => 'size', 'reserve-hold' => 'reserveHold', 'release-one' => 'releaseOne',
];
$method = $commands[array_shift($arguments)] ?? null;
if ($method === null) {
    fwrite(STDERR, 'usage: peer.php '.implode('|', array_keys($commands))." ...\n");
    exit(2);
}
echo json_encode((new Peer($options))->$method(...$arguments), JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
