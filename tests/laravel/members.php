<?php

/** Jobs in PHP that are members of flows: each notes on the trail of the pools that it has begun and ended. */

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Bus\Batchable;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Database\Eloquent\ModelNotFoundException;
use Illuminate\Queue\InteractsWithQueue;
use RuntimeException;

require_once __DIR__.'/../../docs/laravel/QueuepoolMember.php';

function die_once(Shipment $job): void
{
    if ($job->attempts() === 1) {
        posix_kill(getmypid(), SIGKILL);
    }
}

class Shipment implements ShouldQueue
{
    use InteractsWithQueue;
    use Queueable;

    public $name = '';

    public $seconds = 0.0;

    public $fails = '';

    public $releases = 0;

    public function handle()
    {
        $this->note('begins');
        usleep((int) (1_000_000 * $this->seconds));
        if ($this->fails !== '' && ! file_exists($this->fails)) {
            throw new RuntimeException('as asked');
        }
        if ($this->attempts() <= $this->releases) {
            return $this->release();
        }
        $this->note('ends');

        return strtoupper($this->name);
    }

    public function failed($error): void
    {
        $this->note('failed');
    }

    protected function note(string $what): void
    {
        $facts = ['what' => $what, 'name' => $this->name, 'job' => $this->job?->uuid(), 'php' => getmypid()];
        file_put_contents(getenv('TRAIL'), json_encode($facts)."\n", FILE_APPEND);
    }
}

/** Kills its worker in the first attempt, when it has ended and that is not reported yet. */
class DiesUnreported extends Shipment
{
    public function dispatchNextJobInChain()
    {
        die_once($this);
    }
}

/** The same, when that is reported and the job is not deleted yet. */
class DiesReported extends Shipment
{
    use Batchable;

    public function batch()
    {
        die_once($this);
    }
}

class NeedsModel extends Shipment
{
    public $deleteWhenMissingModels = true;

    public function __wakeup()
    {
        throw new ModelNotFoundException;
    }
}

class Large extends Shipment
{
    public function handle()
    {
        parent::handle();

        return str_repeat('é', (int) (65_536 / 6) + ($this->releases ? 0 : 1));
    }
}

class Odd extends Shipment
{
    public function handle()
    {
        return NAN;
    }
}
