<?php

/** The jobs of the chaos runs on Laravel's side: no mode does harm here, all write into the same ledger. */

use Illuminate\Contracts\Queue\Job;

class Chaos
{
    public function run(Job $job, $data): void
    {
        $data = (array) $data;
        $this->write('start', $job, array_filter(['due' => $data['due'] ?? 0]));
        usleep((int) (1_000_000 * ($data['seconds'] ?? 0)) % 1_000_000);
        $this->write('finish', $job);
        try {
            $job->delete();
        } catch (Throwable $refused) {
            $this->write('undeleted', $job);
            throw $refused;
        }
    }

    public function loop(Job $job, $data): void
    {
        $this->run($job, $data);
    }

    public function soft(Job $job, $data): void
    {
        $this->run($job, $data);
    }

    public function soft_loop(Job $job, $data): void
    {
        $this->run($job, $data);
    }

    private function write(string $what, Job $job, array $more = []): void
    {
        $facts = ['t' => hrtime(true), 'f' => $what, 'id' => $job->payload()['id'], 'a' => $job->attempts(), 'pid' => getmypid()];
        file_put_contents(getenv('CHAOS_LEDGER'), json_encode($facts + $more)."\n", FILE_APPEND);
    }
}
