<?php

namespace App\Queue;

use Illuminate\Contracts\Queue\Job;
use Illuminate\Queue\CallQueuedHandler;
use RuntimeException;

/**
 * Does what Laravel does after a job, for jobs that queuepool has run: releases the unique lock, dispatches the next job
 * of the chain, counts the batch, calls catch callbacks and the job's failed(). For Laravel 8 to 13.
 */
class QueuepoolOutcome extends CallQueuedHandler
{
    private bool $unlocked = false;

    /** The job has succeeded. */
    public function succeeded(Job $job, array $data)
    {
        $this->unlocked = $data['unlocked'] ?? false;
        $command = $this->setJobInstanceIfNecessary($job, $this->getCommand($data));
        $this->ensureUniqueJobLockIsReleased($command);
        $this->ensureNextJobInChainIsDispatched($command);
        $this->ensureSuccessfulBatchJobIsRecorded($command);
        $job->delete();
    }

    /** The job has failed for good. */
    public function lost(Job $job, array $data)
    {
        $this->unlocked = $data['unlocked'] ?? false;
        $job->delete(); // first, as Job::fail() does: a second run would count the failure twice
        parent::failed($data, new RuntimeException($data['error']), $job->uuid());
    }

    /** This job itself has failed: the job that it is about has not, or already has. */
    public function failed(array $data, $e, string $uuid, ?Job $job = null)
    {
    }

    protected function ensureUniqueJobLockIsReleased($command)
    {
        if (! $this->unlocked) {
            parent::ensureUniqueJobLockIsReleased($command);
        }
    }
}
