<?php

/** The commands on the queue. */

declare(strict_types=1);

use App\Jobs\SecretMail;
use App\Jobs\SendMail;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

class Queueing
{
    private ?string $queueName;

    public function __construct(private Application $application)
    {
        $this->queueName = $application->option('queue');
    }

    public function pushString(string $name, string $data = '""'): array
    {
        // Decoded to objects, so that {} is not pushed as [].
        $data = json_decode($data, false, 512, JSON_THROW_ON_ERROR);
        $delay = $this->application->number('delay') ?? 0;
        $queue = $this->application->queue();

        return ['id' => $delay > 0
            ? $queue->later($delay, $name, $data, $this->queueName)
            : $queue->push($name, $data, $this->queueName)];
    }

    /** As `SendMail::dispatch($to, $template)->onQueue(...)->delay(...)` does. */
    public function pushObject(string $to, string $template): array
    {
        $application = $this->application;
        $job = $application->option('encrypted') ? new SecretMail($to, $template) : new SendMail($to, $template);
        $job->onQueue($this->queueName)->delay($application->number('delay'));
        $job->tries = $application->number('tries');
        $job->timeout = $application->number('timeout');
        if ($application->option('fail-times') !== null) {
            $job->failTimes = $application->number('fail-times');
        }
        $backoff = $application->option('backoff');
        $job->backoff = $backoff === null ? null : array_map('intval', explode(',', $backoff));

        return ['id' => $application->container->make(BusContract::class)->dispatch($job)];
    }

    /** As WorkCommand: the listener that logs the failed row is the command's, not the worker's. */
    public function work(): array
    {
        $container = $this->application->container;
        $container['events']->listen(JobFailed::class, fn (JobFailed $event) => $container['queue.failer']->log(
            $event->connectionName, $event->job->getQueue(), $event->job->getRawBody(), $event->exception
        ));
        $worker = (new Worker($container['queue'], $container['events'], new StderrHandler, fn () => false))
            ->setName('default')->setCache($this->application->cache());
        $run = $this->application->option('once') === null ? 'daemon' : 'runNextJob';

        return ['status' => (int) $worker->$run('default', $this->queueName ?? 'default', $this->workerOptions())];
    }

    public function size(): array
    {
        return ['size' => $this->application->queue()->size($this->queueName)];
    }

    public function reserveHold(): array
    {
        return $this->application->facts($this->application->queue()->pop($this->queueName));
    }

    public function releaseOne(): array
    {
        $job = $this->application->queue()->pop($this->queueName);
        $job?->release($this->application->number('delay') ?? 0);

        return $this->application->facts($job);
    }

    private function workerOptions(): WorkerOptions
    {
        $application = $this->application;
        $options = new WorkerOptions('default', $application->option('backoff') ?? 0);
        $options->sleep = (float) ($application->option('sleep') ?? 0.05);
        $options->timeout = $application->number('timeout') ?? 60;
        $options->maxTries = $application->number('tries') ?? 1;
        $options->maxJobs = $application->number('max-jobs') ?? 0;
        $options->maxTime = $application->number('max-time') ?? 0;
        $options->stopWhenEmpty = $application->option('stop-when-empty') !== null;

        return $options;
    }
}
