<?php

/** One process for many orders. */

declare(strict_types=1);

use Illuminate\Queue\RedisQueue;
use Illuminate\Support\Carbon;

class Serving
{
    public function __construct(private Application $application)
    {
    }

    /** One order per line of stdin, at the second that it names; one answer per line of stdout. */
    public function serve(): array
    {
        while (($line = fgets(STDIN)) !== false) {
            $order = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
            Carbon::setTestNow(Carbon::createFromTimestamp($order['now']));
            echo json_encode($this->obey($order), JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
            flush();
        }

        return ['served' => true];
    }

    private function obey(array $order): mixed
    {
        [$place, $queue, $name] = [$this->application->place, $this->application->queue(), $order['queue']];

        return match ($order['verb']) {
            'push' => $queue->pushRaw($order['raw'], $name),
            'later' => $place->laterRaw($queue, $order),
            'stage' => $this->stage($queue, $name),
            'pop' => $this->application->facts($queue->pop($name)),
            'delete' => $place->held($queue, $order)->delete(),
            'release' => $place->held($queue, $order)->release($order['delay']),
            'size' => $queue->size($name),
        };
    }

    /** In Redis only: in a database, what is due needs no staging. */
    private function stage(RedisQueue $queue, string $name): mixed
    {
        $migrate = fn () => $queue->migrate($queue->getQueue($name));

        return Closure::bind($migrate, null, RedisQueue::class)();
    }
}
