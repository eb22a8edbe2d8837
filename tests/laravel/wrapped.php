<?php

/**
 * Payloads of jobs that carry another object, made by Laravel 8.83 itself: php wrapped.php
 *
 * Prints one JSON object: by kind, the payload as it would be pushed.
 */

declare(strict_types=1);

namespace App;

use Illuminate\Broadcasting\BroadcastEvent;
use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Events\Dispatcher;
use Illuminate\Mail\Mailable;
use Illuminate\Mail\SendQueuedMailable;
use Illuminate\Notifications\AnonymousNotifiable;
use Illuminate\Notifications\Notification;
use Illuminate\Notifications\SendQueuedNotifications;
use Illuminate\Queue\SyncQueue;

error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('display_errors', 'stderr');
foreach (['Events', 'Queue', 'Bus', 'Mail', 'Notifications', 'Broadcasting'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}

class OrderShipped
{
    public function __construct(public int $order, protected string $carrier)
    {
    }
}

class SendReceipt implements ShouldQueue
{
    public $tries = 3;

    public $queue = 'receipts';

    public function handle($event): void
    {
    }
}

class UserEvents implements ShouldQueue
{
    public function onLogin($user, $remember): void
    {
    }
}

class Welcome extends Mailable implements ShouldQueue
{
    public $tries = 5;

    public function __construct(public string $name)
    {
    }
}

class InvoicePaid extends Notification implements ShouldQueue
{
    public function __construct(public int $amount)
    {
    }
}

/** The queue: it only makes the payload. */
class Pushed extends SyncQueue
{
    public array $payloads = [];

    public function connection($name = null): static
    {
        return $this;
    }

    public function pushOn($queue, $job, $data = '')
    {
        $this->payloads[] = $this->createPayload($job, $queue);
    }
}

$container = new Container;
$queue = new Pushed;
$queue->setContainer($container);
$events = new Dispatcher($container);
$events->setQueueResolver(fn () => $queue);
$events->listen(OrderShipped::class, SendReceipt::class);
$events->listen('user.login', [UserEvents::class, 'onLogin']);

$shipped = new OrderShipped(7, 'dhl');
$events->dispatch($shipped);
$events->dispatch('user.login', [42, true]);
$queue->pushOn(null, new SendQueuedMailable((new Welcome('Zoë'))->to('a@b.c')->subject('Hello')));
$someone = (new AnonymousNotifiable)->route('mail', 'a@b.c');
$queue->pushOn(null, new SendQueuedNotifications($someone, new InvoicePaid(990), ['mail']));
$queue->pushOn(null, new BroadcastEvent($shipped));
$kinds = ['listener', 'listener of a name', 'mailable', 'notification', 'broadcast'];
echo json_encode(array_combine($kinds, array_map('json_decode', $queue->payloads))), "\n";
