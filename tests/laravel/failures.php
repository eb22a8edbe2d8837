<?php

/** Where failures are told: the failed jobs of Redis beside the jobs' own lines, exceptions on stderr. */

declare(strict_types=1);

use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Queue\Failed\FailedJobProviderInterface;

/** Writes a failed row where the jobs write. */
class AppendingFailer implements FailedJobProviderInterface
{
    public function log($connection, $queue, $payload, $exception)
    {
        $row = ['connection' => $connection, 'queue' => $queue, 'payload' => $payload];
        App\Jobs\write_line(['failed_row' => $row + ['exception' => (string) $exception]]);
    }

    public function all()
    {
        return [];
    }

    public function find($id)
    {
        return null;
    }

    public function forget($id)
    {
        return false;
    }

    public function flush()
    {
    }
}

class StderrHandler implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, get_class($e).': '.$e->getMessage()."\n");
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e)
    {
        throw $e;
    }
}
