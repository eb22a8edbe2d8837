<?php

/** The commands beside the queue itself: tables, failed jobs, cache. */

declare(strict_types=1);

use Illuminate\Queue\Console\RetryCommand;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;

const RESTART_KEY = 'illuminate:queue:restart';

class Keeping
{
    public function __construct(private Application $application)
    {
    }

    public function migrate(): array
    {
        $this->application->place->migrate($this->application->option('shape') ?? '8');

        return ['migrated' => true];
    }

    public function failed(): array
    {
        return ['rows' => $this->application->container['queue.failer']->all()];
    }

    /** artisan's own queue:retry. */
    public function retry(string ...$ids): array
    {
        $command = new RetryCommand;
        $command->setLaravel($this->application->container);
        $output = new BufferedOutput;
        $status = $command->run(new ArrayInput(['id' => $ids]), $output);

        return ['status' => $status, 'said' => trim($output->fetch())];
    }

    public function restart(): array
    {
        $cache = $this->application->cache();
        $cache->forever(RESTART_KEY, time());

        return ['keys' => [$this->keyOf(RESTART_KEY)], 'value' => (int) $cache->get(RESTART_KEY)];
    }

    /** VALUE is JSON; for ever, or for so many --seconds. */
    public function cachePut(string $key, string $value): array
    {
        $value = json_decode($value, true, 512, JSON_THROW_ON_ERROR);
        $this->application->cache()->put($key, $value, $this->application->number('seconds'));

        return ['key' => $this->keyOf($key)];
    }

    public function cacheGet(string $key): array
    {
        return ['value' => $this->application->cache()->get($key)];
    }

    private function keyOf(string $key): string
    {
        return $this->application->place->keyOf($this->application->cache()->getStore(), $key);
    }
}
