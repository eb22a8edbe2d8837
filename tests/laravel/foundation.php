<?php

/** What Laravel's applications have and none of its parts: the source is Foundation/Bus of 8.83, what jobs need of it. */

declare(strict_types=1);

namespace Illuminate\Foundation\Bus;

use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher;

class PendingDispatch
{
    public function __construct(protected $job)
    {
    }

    public function __call($method, $arguments)
    {
        $this->job->{$method}(...$arguments);

        return $this;
    }

    public function __destruct()
    {
        Container::getInstance()->make(Dispatcher::class)->dispatch($this->job);
    }
}

trait Dispatchable
{
    public static function dispatch(...$arguments)
    {
        return new PendingDispatch(new static(...$arguments));
    }
}

class PendingChain
{
    private array $catchCallbacks = [];

    public function __construct(private $job, private array $chain)
    {
    }

    public function catch($callback)
    {
        $this->catchCallbacks[] = $callback;

        return $this;
    }

    public function dispatch()
    {
        $this->job->chain($this->chain);
        $this->job->chainCatchCallbacks = $this->catchCallbacks;

        return Container::getInstance()->make(Dispatcher::class)->dispatch($this->job);
    }
}
