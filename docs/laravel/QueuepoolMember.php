<?php

namespace App\Queue;

use Illuminate\Contracts\Queue\Job;
use Illuminate\Queue\CallQueuedHandler;
use RuntimeException;

/**
 * Runs a job that is a member of a flow of queuepool, as Laravel runs any job, and reports its end to the pool, which
 * goes on with the flow. The job's own class needs nothing for that. For Laravel 8 to 13.
 */
class QueuepoolMember extends CallQueuedHandler
{
    /** Most bytes of JSON that a pool keeps of a result. */
    private const MOST_RESULT = 65536;

    /** The connection for reports of failures before Laravel passes the job to failed(); null is the default one. */
    protected ?string $connection = null;

    private array $data = [];

    private $result;

    public function call(Job $job, array $data)
    {
        $this->data = $data;
        $this->connection = $job->getConnectionName();
        parent::call($job, $data);
    }

    /** It has failed for good, perhaps without having begun. */
    public function failed(array $data, $e, string $uuid, ?Job $job = null)
    {
        $this->connection = $job ? $job->getConnectionName() : $this->connection;
        try {
            $this->report($data, 'failed'); // first, as the rest calls the application's code
        } finally {
            parent::failed($data, $e, $uuid, $job);
        }
    }

    protected function dispatchThroughMiddleware(Job $job, $command)
    {
        $this->result = parent::dispatchThroughMiddleware($job, $command);
        if ($this->isTaken($this->data['qpReport']['flow'])) {
            $size = strlen((string) json_encode($this->result, JSON_UNESCAPED_SLASHES));
            if ($size > self::MOST_RESULT) { // a retry would return the same
                $job->fail(new RuntimeException("Its result has {$size} bytes of JSON, at most ".self::MOST_RESULT.' are kept.'));
            }
        }

        return $this->result;
    }

    /** It is done. Laravel deletes it after this: a worker that is killed in between leaves it to another, which reports it again. */
    protected function ensureNextJobInChainIsDispatched($command)
    {
        parent::ensureNextJobInChainIsDispatched($command);
        $this->report($this->data, 'done', $this->result);
    }

    /** A model that it needs is gone: it fails, or is deleted if its class wants that. */
    protected function handleModelNotFound(Job $job, $e)
    {
        parent::handleModelNotFound($job, $e);
        if (! $job->hasFailed()) {
            $this->report($this->data, 'done');
        }
    }

    /** Whether another member takes the result. */
    private function isTaken(string $flow): bool
    {
        return substr($flow, -1) === 'r';
    }

    private function report(array $data, string $end, $result = null): void
    {
        ['flow' => $flow, 'queue' => $queue] = $data['qpReport'];
        $report = ['flow' => $flow, 'end' => $end];
        if ($this->isTaken($flow)) {
            $report['result'] = $result;
        }
        $this->container->make('queue')->connection($this->connection)->push('queuepool.flow.report', $report, $queue);
    }
}
