<?php

/** Dispatches chains, batches and unique jobs. */

declare(strict_types=1);

use App\Jobs\Callbacks;
use App\Jobs\Step;
use App\Jobs\UniqueStep;
use App\Jobs\UniqueUntilStep;
use Illuminate\Bus\BatchFactory;
use Illuminate\Bus\BatchRepository;
use Illuminate\Bus\DatabaseBatchRepository;
use Illuminate\Bus\PendingBatch;
use Illuminate\Bus\UniqueLock;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Contracts\Cache\Repository as CacheContract;

require_once __DIR__.'/../../docs/laravel/QueuepoolOutcome.php';

/** As the framework's helper, which is in none of its parts. */
function dispatch($job)
{
    return Illuminate\Container\Container::getInstance()->make(BusContract::class)->dispatch($job);
}

class Following
{
    private ?string $queue;

    public function __construct(private Application $application)
    {
        $this->queue = $application->option('queue');
    }

    /** `Bus::chain([new Step(1), ...])->catch(...)->dispatch()`; `--fails=N` is the number of the step that fails. */
    public function chain(string $length): array
    {
        $steps = array_map($this->step(...), range(1, (int) $length));
        $first = array_shift($steps);
        $first->chain($steps)->allOnQueue($this->queue);
        $first->chainCatchCallbacks = [[Callbacks::class, 'caught']];

        return ['id' => dispatch($first)];
    }

    /** `Bus::batch([...])->then(...)->catch(...)->finally(...)->dispatch()`. */
    public function batch(string $size): array
    {
        $steps = array_map($this->step(...), range(1, (int) $size));
        $batch = (new PendingBatch($this->application->container, collect($steps)))->name('steps')
            ->then([Callbacks::class, 'then'])->catch([Callbacks::class, 'failure'])
            ->finally([Callbacks::class, 'finally'])->allowFailures($this->application->option('strict') === null);

        return ['id' => $batch->onQueue($this->queue ?? 'default')->dispatch()->id];
    }

    public function batchState(string $id): array
    {
        return $this->repository()->find($id)->toArray();
    }

    public function cancel(string $id): array
    {
        $this->repository()->cancel($id);

        return [];
    }

    /** As `UniqueStep::dispatch($number)`: whether the lock was free. */
    public function unique(string $number): array
    {
        $class = $this->application->option('until') === null ? UniqueStep::class : UniqueUntilStep::class;
        $job = (new $class((int) $number, $this->application->option('fails') !== null))->onQueue($this->queue);
        $taken = (new UniqueLock($this->application->container->make(CacheContract::class)))->acquire($job);

        return ['pushed' => $taken, 'id' => $taken ? dispatch($job) : null];
    }

    /** Runs a file of the application. */
    public function perform(string $file): array
    {
        require $file;

        return [];
    }

    private function step(int $number): Step
    {
        return new Step($number, $this->application->number('fails') === $number);
    }

    private function repository(): BatchRepository
    {
        return $this->application->container->make(BatchRepository::class);
    }
}
