<?php

/** What Laravel's own application would have wired: container, events, bus, queue, cache, failed jobs. */

declare(strict_types=1);

use Illuminate\Bus\BatchFactory;
use Illuminate\Bus\BatchRepository;
use Illuminate\Bus\DatabaseBatchRepository;
use Illuminate\Bus\Dispatcher as Bus;
use Illuminate\Cache\Repository as Cache;
use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Contracts\Cache\Repository as CacheContract;
use Illuminate\Contracts\Container\Container as ContainerContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Encryption\Encrypter as EncrypterContract;
use Illuminate\Contracts\Events\Dispatcher as EventsContract;
use Illuminate\Contracts\Queue\Job;
use Illuminate\Contracts\Queue\Queue;
use Illuminate\Encryption\Encrypter;
use Illuminate\Events\Dispatcher as Events;
use Illuminate\Queue\Capsule\Manager as Capsule;
use Illuminate\Support\Facades\Facade;

class Application
{
    public Container $container;

    public Place $place;

    private Capsule $capsule;

    public function __construct(private array $options)
    {
        $this->container = new Container;
        Container::setInstance($this->container);
        Facade::setFacadeApplication($this->container);
        $this->capsule = new Capsule($this->container);
        $this->place = place_for($this->container);
        $this->bind();
        $this->capsule->addConnection($this->place->queue() + [
            'queue' => 'default', 'retry_after' => $this->number('retry-after') ?? 90,
        ]);
    }

    public function queue(): Queue
    {
        return $this->capsule->getConnection('default');
    }

    public function cache(): Cache
    {
        return new Cache($this->place->cache($this->option('cache-prefix') ?? 'laravel_cache'));
    }

    public function facts(?Job $job): array
    {
        $facts = ['id' => $job?->getJobId(), 'attempts' => $job?->attempts(), 'raw' => $job?->getRawBody()];

        return $facts + $this->place->proof($job);
    }

    public function option(string $name): ?string
    {
        return $this->options[$name] ?? null;
    }

    public function number(string $name): ?int
    {
        return isset($this->options[$name]) ? (int) $this->options[$name] : null;
    }

    private function bind(): void
    {
        $container = $this->container;
        $container->instance('events', new Events($container));
        $container->instance(EventsContract::class, $container['events']);
        $container->instance(ContainerContract::class, $container);
        $container->instance(ExceptionHandler::class, new StderrHandler);
        $container->instance(BusContract::class, new Bus($container, fn ($name) => $this->queue()));
        $container->instance('queue', $this->capsule->getQueueManager());
        $container->instance('queue.failer', $this->place->failer());
        if ($key = $this->option('app-key')) {
            $encrypter = new Encrypter(base64_decode($key), $this->option('cipher') ?? 'AES-256-CBC');
            $container->instance(EncrypterContract::class, $encrypter);
        }
        $container->singleton(CacheContract::class, fn () => $this->cache());
        $container->singleton(BatchRepository::class, fn () => new DatabaseBatchRepository(
            new BatchFactory($container['queue']), $this->place->batches(), 'job_batches'
        ));
    }
}
