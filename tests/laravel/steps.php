<?php

/** The jobs of chains and batches, unique jobs, and what Laravel calls after them. */

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Bus\Batch;
use Illuminate\Bus\Batchable;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldBeUnique;
use Illuminate\Contracts\Queue\ShouldBeUniqueUntilProcessing;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;
use RuntimeException;
use Throwable;

/** A step of a chain or a member of a batch; `fails` makes each of its attempts fail. */
class Step implements ShouldQueue
{
    use Batchable;
    use InteractsWithQueue;
    use Queueable;

    public $timeout = 600;

    public function __construct(public $number, public $fails = false)
    {
    }

    public function handle(): void
    {
        write_line(['job' => static::class, 'number' => $this->number, 'queue' => $this->job->getQueue()]);
        if ($this->fails) {
            throw new RuntimeException('told to fail');
        }
    }

    public function failed($error): void
    {
        write_line(['failed' => static::class, 'number' => $this->number, 'error' => $error->getMessage()]);
    }
}

class UniqueStep extends Step implements ShouldBeUnique
{
    public function uniqueId()
    {
        return (string) $this->number;
    }
}

class UniqueUntilStep extends UniqueStep implements ShouldBeUniqueUntilProcessing
{
}

class Callbacks
{
    public static function caught(Throwable $error): void
    {
        write_line(['callback' => 'chain-catch', 'error' => $error->getMessage()]);
    }

    public static function then(Batch $batch): void
    {
        write_line(['callback' => 'then', 'batch' => $batch->id]);
    }

    public static function failure(Batch $batch, Throwable $error): void
    {
        write_line(['callback' => 'catch', 'batch' => $batch->id, 'error' => $error->getMessage()]);
    }

    public static function finally(Batch $batch): void
    {
        write_line(['callback' => 'finally', 'batch' => $batch->id]);
    }
}
