<?php

/**
 * The real Laravel queue on one store: php peer.php COMMAND [ARG ...] [--option[=value] ...]
 *
 * QP_SOCKET  Redis' unix socket      QP_PREFIX  prefix of every key      QP_OUT  where jobs write what they did
 * QP_URL  the database instead of Redis, named as to queuepool: sqlite:///…, postgresql://…, mariadb://…
 * QP_FAILED_URL  the database of failed_jobs, where the queue is in Redis; QP_BATCHES_URL  that of job_batches
 * --boot=FILE  PHP to run first, as an application's service provider would
 * QP_PASSWORD  Redis' password, if it has one
 * Prints one JSON document; whatever PHP or Laravel complain about goes to stderr.
 */

declare(strict_types=1);

// Laravel 8.83 is older than PHP 8.2 and trips over its deprecations.
error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('display_errors', 'stderr');

foreach (['Events', 'Redis', 'Queue', 'Cache', 'Bus', 'Database', 'Console', 'Encryption'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}
foreach (['jobs', 'connections', 'failures', 'tables', 'application', 'queueing', 'keeping', 'serving', 'steps', 'following', 'limiting'] as $part) {
    require_once __DIR__."/$part.php";
}

[$arguments, $options] = [[], []];
foreach (array_slice($argv, 1) as $word) {
    if (str_starts_with($word, '--')) {
        [$name, $value] = explode('=', substr($word, 2), 2) + [1 => '1'];
        $options[$name] = $value;
    } else {
        $arguments[] = $word;
    }
}
if (isset($options['boot'])) {
    require $options['boot'];
}
$commands = [
    'push-string' => [Queueing::class, 'pushString'], 'push-object' => [Queueing::class, 'pushObject'],
    'work' => [Queueing::class, 'work'], 'size' => [Queueing::class, 'size'],
    'reserve-hold' => [Queueing::class, 'reserveHold'], 'release-one' => [Queueing::class, 'releaseOne'],
    'restart' => [Keeping::class, 'restart'], 'migrate' => [Keeping::class, 'migrate'],
    'failed' => [Keeping::class, 'failed'], 'retry' => [Keeping::class, 'retry'],
    'cache-put' => [Keeping::class, 'cachePut'], 'cache-get' => [Keeping::class, 'cacheGet'],
    'chain' => [Following::class, 'chain'], 'batch' => [Following::class, 'batch'],
    'batch-state' => [Following::class, 'batchState'], 'cancel' => [Following::class, 'cancel'],
    'unique' => [Following::class, 'unique'], 'perform' => [Following::class, 'perform'],
    'enter' => [Limiting::class, 'enter'], 'through' => [Limiting::class, 'through'],
    'serve' => [Serving::class, 'serve'],
];
[$class, $method] = $commands[array_shift($arguments)] ?? [null, null];
if ($method === null) {
    fwrite(STDERR, 'usage: peer.php '.implode('|', array_keys($commands))." ...\n");
    exit(2);
}
$answer = (new $class(new Application($options)))->$method(...$arguments);
echo json_encode($answer, JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
