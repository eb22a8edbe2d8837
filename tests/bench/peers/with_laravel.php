<?php

/** The jobs of jobs.py: each notes in one write which it is, when it began, and in which process. */

declare(strict_types=1);

namespace Bench;

use Illuminate\Contracts\Queue\Job as Envelope;

class Job
{
    private static $trail;

    public function noop(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        $job->delete();
    }

    public function nap1(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        usleep(1000);
        $job->delete();
    }

    public function nap10(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        usleep(10_000);
        $job->delete();
    }

    public function hang(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        sleep(60);
    }

    /** Hears of no exception, whoever raises it in here. */
    public function stuck(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        while (true) {
            try {
                usleep(10_000);
            } catch (\Throwable) {
                continue;
            }
        }
    }

    /** No line of PHP runs here for longer than anybody waits. */
    public function stuck_in_c(Envelope $job, array $data): void
    {
        $this->note($data['n']);
        hash_pbkdf2('sha256', 'password', 'salt', 2_000_000_000);
    }

    private function note(int $number): void
    {
        self::$trail ??= fopen(getenv('BENCH_TRAIL'), 'a');
        fwrite(self::$trail, pack('qdq', $number, hrtime(true) / 1e9, getmypid()));
    }
}
