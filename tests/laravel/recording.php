<?php

/**
 * Prints the payloads that a version of Laravel makes: php recording.php FRAMEWORK, its source as it is released.
 *
 * tests/laravel/recorded.json has the output of several versions. They need other packages (Carbon, Ramsey\Uuid, Laravel's
 * closures) in PHP's include path; no application, no store, no key.
 */

declare(strict_types=1);

namespace App\Jobs {
    use Illuminate\Bus\Batchable;
    use Illuminate\Bus\Queueable;
    use Illuminate\Contracts\Queue\ShouldBeUnique;
    use Illuminate\Contracts\Queue\ShouldQueue;
    use Illuminate\Queue\InteractsWithQueue;
    use Illuminate\Queue\SerializesModels;

    $source = $argv[1].'/src/Illuminate';
    spl_autoload_register(function (string $class) use ($source) {
        $path = str_replace('\\', '/', $class).'.php';
        $short = substr($path, strlen('Illuminate/'));
        $within = substr($short, strlen('Support/'));
        $places = str_starts_with($path, 'Illuminate/')
            ? ["$source/$short", ...array_map(fn ($part) => "$source/$part/$within", ['Collections', 'Macroable', 'Conditionable', 'Reflection'])]
            : [stream_resolve_include_path($path) ?: ''];
        foreach (array_filter($places, 'is_file') as $place) {
            require_once $place;
        }
    });
    foreach (['Collections/functions', 'Collections/helpers', 'Reflection/helpers', 'Support/functions', 'Support/helpers'] as $file) {
        is_file("$source/$file.php") && require_once "$source/$file.php";
    }

    class Step implements ShouldQueue
    {
        use Batchable, InteractsWithQueue, Queueable;

        public $timeout = 600;

        public function __construct(public int $number)
        {
        }
    }

    /** As `make:job` writes it. */
    class Model extends Step
    {
        use SerializesModels;
    }

    class Unique extends Step implements ShouldBeUnique
    {
        public function uniqueId()
        {
            return (string) $this->number;
        }
    }

    class Named extends Unique
    {
        public function displayName()
        {
            return "Order {$this->number}";
        }
    }
}

namespace App\Events {
    class OrderMoved
    {
        public function __construct(public int $order)
        {
        }

        public function uniqueId()
        {
            return (string) $this->order;
        }
    }
}

namespace App\Listeners {
    use App\Events\OrderMoved;
    use Illuminate\Contracts\Queue\{ShouldBeUnique, ShouldBeUniqueUntilProcessing, ShouldQueue};

    class SendReceipt implements ShouldQueue
    {
        public function handle(OrderMoved $event)
        {
        }
    }

    class UniqueReceipt extends SendReceipt implements ShouldBeUnique
    {
        public function uniqueId(OrderMoved $event)
        {
            return $event->order;
        }
    }

    class ReceiptUntil extends UniqueReceipt implements ShouldBeUniqueUntilProcessing
    {
    }
}

namespace {
    use App\Events\OrderMoved;
    use App\Jobs\{Model, Named, Step, Unique};
    use App\Listeners\{ReceiptUntil, SendReceipt, UniqueReceipt};
    use Illuminate\Broadcasting\UniqueBroadcastEvent;
    use Illuminate\Container\Container;
    use Illuminate\Contracts\Redis\Factory;
    use Illuminate\Events\Dispatcher;
    use Illuminate\Foundation\Queue\InteractsWithUniqueJobs;
    use Illuminate\Log\Context\Repository;
    use Illuminate\Queue\Middleware\SkipIfBatchCancelled;
    use Illuminate\Queue\Middleware\WithoutOverlapping;
    use Illuminate\Queue\Queue;
    use Illuminate\Queue\RedisQueue;
    use Illuminate\Support\Facades\Facade;

    error_reporting(E_ALL & ~E_DEPRECATED);

    /** As an application's configuration has it: the cache's default store. */
    function config($key)
    {
        return 'redis';
    }

    $container = new Container;
    Container::setInstance($container);
    Facade::setFacadeApplication($container);
    $queue = new RedisQueue(new class implements Factory {
        public function connection($name = null)
        {
        }
    });
    $queue->setContainer($container);
    $context = class_exists(Repository::class) ? new Repository(new Dispatcher($container)) : null;
    if ($context) {
        $container->instance(Repository::class, $context);
        // Source: Log/Context/ContextServiceProvider.php
        Queue::createPayloadUsing(function ($connection, $queue, $payload) use ($context) {
            $found = $context->dehydrate();

            return $found === null ? $payload : [...$payload, 'illuminate:log:context' => $found];
        });
    }

    $pushed = fn ($job) => (new ReflectionMethod($queue, 'createPayload'))->invoke($queue, $job, 'python');
    /** The payload of a job that is dispatched now. Source: Foundation/Bus/PendingDispatch.php */
    $made = function ($job) use ($pushed, $context) {
        $dispatch = trait_exists(InteractsWithUniqueJobs::class) && $context
            ? new class { use InteractsWithUniqueJobs; } : null;
        $dispatch?->addUniqueJobInformationToContext($job);
        try {
            return $pushed($job);
        } finally {
            $dispatch?->removeUniqueJobInformationFromContext($job);
        }
    };

    $chained = fn ($class) => (function () use ($class) {
        $job = (new $class(1))->chain([new $class(2), new $class(3)])->allOnQueue('python');
        $job->chainCatchCallbacks = [['App\Jobs\Album', 'failed']];

        return $job;
    })();
    $owned = function ($job) {
        if (property_exists($job, 'uniqueLockOwner')) {
            $job->uniqueLockOwner = 'Ow2NerOw2NerOw2N';
        }

        return $job;
    };
    $listening = fn ($class) => (new ReflectionMethod(Dispatcher::class, 'createListenerAndJob'))
        ->invoke(new Dispatcher($container), $class, 'handle', [new OrderMoved(7)])[1];
    $batched = fn ($class) => (new $class(1))->withBatchId('9d2e7f5c-0000-4000-8000-000000000001');
    $jobs = [
        'plain' => new Step(1), 'plain model' => new Model(1),
        'chain' => $chained(Step::class), 'chain of models' => $chained(Model::class),
        'batch' => $batched(Step::class), 'batch of models' => $batched(Model::class),
        'skipped' => $batched(Step::class)->through([new SkipIfBatchCancelled]),
        'overlapping' => (new Step(1))->through([new WithoutOverlapping('7')]),
        'unique' => $owned(new Unique(7)), 'unique by name' => $owned(new Named(7)),
    ];
    if (property_exists(Step::class, 'debounceOwner')) {
        $jobs['debounced'] = new Step(1);
        $jobs['debounced']->debounceOwner = 'De8OuncerDe8Ouncer';
    }
    $payloads = array_map($made, $jobs);
    // Pushed without a dispatch, and so without its context.
    $payloads += array_map($pushed, [
        'listener' => $listening(SendReceipt::class),
        'unique listener' => $owned($listening(UniqueReceipt::class)),
        'listener until' => $owned($listening(ReceiptUntil::class)),
        'unique broadcast' => $owned(new UniqueBroadcastEvent(new OrderMoved(7))),
        'scheduled' => $owned(new Unique(7)),
    ]);
    if ($context) {
        $context->add('trace_id', 't1');
        $payloads['context'] = $made(new Step(1));
        // What a unique job dispatches inherits its context.
        $context->addHidden(['laravel_unique_job_cache_store' => 'redis',
            'laravel_unique_job_key' => 'laravel_unique_job:App\Jobs\Unique:7']
            + (property_exists(Step::class, 'uniqueLockOwner') ? ['laravel_unique_job_lock_owner' => 'Ow2NerOw2NerOw2N'] : []));
        $payloads['child'] = $made(new Step(2));
    }
    echo json_encode($payloads, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
}
