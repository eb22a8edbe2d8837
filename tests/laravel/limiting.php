<?php

/** Goes through Laravel's job middleware, as a job of its own does. */

declare(strict_types=1);

namespace App\Jobs {
    /** A job that notes whether it was released. */
    class Limited
    {
        public $released;

        public function __construct(public $order)
        {
        }

        public function release($delay = 0): void
        {
            $this->released = $delay;
        }
    }
}

namespace {
    use App\Jobs\Limited;
    use App\Jobs\Step;
    use Illuminate\Cache\RateLimiter;
    use Illuminate\Cache\RateLimiting\Limit;
    use Illuminate\Contracts\Redis\Factory;
    use Illuminate\Queue\Middleware\RateLimited;
    use Illuminate\Queue\Middleware\RateLimitedWithRedis;
    use Illuminate\Queue\Middleware\ThrottlesExceptions;
    use Illuminate\Queue\Middleware\ThrottlesExceptionsWithRedis;
    use Illuminate\Queue\Middleware\WithoutOverlapping;

    use function App\Jobs\write_line;

    class Limiting
    {
        public function __construct(private Application $application)
        {
            $limiter = new RateLimiter($application->cache());
            $limiter->for('stripe', fn (Limited $job) => Limit::perMinutes(10, 3)->by((string) $job->order));
            $application->container->instance(RateLimiter::class, $limiter);
            $application->container->alias('redis', Factory::class);
        }

        /** One attempt at the job; it stays in it while there is no file `--gate`, and raises with `--fails`. */
        public function enter(string $kind, string $order): array
        {
            $job = $kind === 'step' ? new Step((int) $order) : new Limited($order);
            $ran = false;
            $this->made($kind, $order)->handle($job, function () use (&$ran) {
                $ran = true;
                write_line(['in' => 'php']);
                while (($gate = $this->application->option('gate')) && ! file_exists($gate)) {
                    usleep(5000);
                }
                if ($this->application->option('fails') !== null) {
                    throw new RuntimeException('told to fail');
                }
            });

            return ['ran' => $ran, 'released' => $job->released ?? null];
        }

        /** `Step::dispatch($number)->through([...])` */
        public function through(string $kind, string $number): array
        {
            $job = (new Step((int) $number))->through([$this->made($kind, $number)])->onQueue('default');

            return ['id' => dispatch($job)];
        }

        private function made(string $kind, string $order): object
        {
            return match ($kind) {
                'overlap' => new WithoutOverlapping($order, 2),
                'step' => (new WithoutOverlapping('Step:'.$order, 2))->withPrefix('own:'),
                'rate' => new RateLimited('stripe'),
                'redis' => new RateLimitedWithRedis('stripe'),
                'throttle' => (new ThrottlesExceptions(3, 10))->by('order '.$order),
                'throttle in redis' => (new ThrottlesExceptionsWithRedis(2, 10))->by('order '.$order),
            };
        }
    }
}
