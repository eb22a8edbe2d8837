<?php

/** The jobs that the peer pushes and runs; each run is one line of JSON in QP_OUT. */

namespace App\Jobs;

use AllowDynamicProperties;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\Job;
use Illuminate\Contracts\Queue\ShouldBeEncrypted;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\SerializesModels;
use RuntimeException;

function write_line(array $line): void
{
    $text = json_encode($line, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR);
    file_put_contents(getenv('QP_OUT'), $text."\n", FILE_APPEND | LOCK_EX);
}

/** A string job: `App\Jobs\Report@build`; asked to, it fails, sleeps or releases itself. */
class Report
{
    public function build(Job $job, $data): void
    {
        $data = (array) $data;
        $facts = ['attempts' => $job->attempts(), 'queue' => $job->getQueue()];
        write_line(['job' => $job->getName(), 'data' => $data] + $facts);
        if (($data['fail_times'] ?? 0) >= $job->attempts()) {
            throw new RuntimeException('told to fail');
        }
        if (($data['release_times'] ?? 0) >= $job->attempts()) {
            $job->release($data['release_delay'] ?? 0);

            return;
        }
        usleep((int) (1_000_000 * ($data['sleep'] ?? 0)));
        $job->delete();
    }

    public function failed($data, $error, $uuid): void
    {
        write_line(['failed' => static::class, 'data' => $data, 'error' => $error->getMessage(), 'uuid' => $uuid]);
    }
}

/** A string job that does nothing, and does not even write that it did. */
class Noop
{
    public function run(Job $job): void
    {
        $job->delete();
    }
}

/** An object job; `$failTimes` is there only when asked for, so that `to` and `template` are all of its data. */
#[AllowDynamicProperties]
class SendMail implements ShouldQueue
{
    use InteractsWithQueue;
    use Queueable;

    public $tries;

    public $backoff;

    public $timeout;

    public $to;

    public $template;

    public function __construct($to, $template)
    {
        $this->to = $to;
        $this->template = $template;
    }

    public function handle(): void
    {
        $facts = ['attempts' => $this->attempts(), 'queue' => $this->job->getQueue()];
        write_line(['job' => static::class, 'to' => $this->to, 'template' => $this->template] + $facts);
        if (($this->failTimes ?? 0) >= $this->attempts()) {
            throw new RuntimeException('told to fail');
        }
    }

    public function failed($error): void
    {
        write_line(['failed' => static::class, 'to' => $this->to, 'error' => $error->getMessage()]);
    }
}

/** An object job as `make:job` writes it: with `SerializesModels`, and properties of each visibility. */
class Sync implements ShouldQueue
{
    use InteractsWithQueue;
    use Queueable;
    use SerializesModels;

    public $account = 1;

    protected $since = 'the start';

    private $token = 'none';

    public function __construct($account, $since, $token)
    {
        [$this->account, $this->since, $this->token] = [$account, $since, $token];
    }

    public function handle(): void
    {
        write_line(['job' => static::class, 'held' => [$this->account, $this->since, $this->token]]);
    }
}

/** The same, encrypted with the application's key. */
class SecretMail extends SendMail implements ShouldBeEncrypted
{
}
